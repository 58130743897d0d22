-- +goose NO TRANSACTION
-- +goose Up
-- create index "contact_organization_id_email_hash" to table: "contacts"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "contact_organization_id_email_hash" ON "contacts" ("organization_id", "email_hash") WHERE (email_hash IS NOT NULL);

-- +goose Down
-- reverse: create index "contact_organization_id_email_hash" to table: "contacts"
DROP INDEX CONCURRENTLY IF EXISTS "contact_organization_id_email_hash";
