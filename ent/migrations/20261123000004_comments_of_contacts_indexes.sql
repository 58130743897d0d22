-- +goose NO TRANSACTION
-- +goose Up
-- create index "comment_contact_id" to table: "comments"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "comment_contact_id" ON "comments" ("contact_id") WHERE (contact_id IS NOT NULL);
-- create index "user_contact_id" to table: "users"
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "user_contact_id" ON "users" ("contact_id") WHERE (contact_id IS NOT NULL);
-- create index "user_organization_id_email_hash" to table: "users"
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "user_organization_id_email_hash" ON "users" ("organization_id", "email_hash") WHERE (email_hash IS NOT NULL);

-- +goose Down
-- reverse: create index "user_organization_id_email_hash" to table: "users"
DROP INDEX CONCURRENTLY IF EXISTS "user_organization_id_email_hash";
-- reverse: create index "user_contact_id" to table: "users"
DROP INDEX CONCURRENTLY IF EXISTS "user_contact_id";
-- reverse: create index "comment_contact_id" to table: "comments"
DROP INDEX CONCURRENTLY IF EXISTS "comment_contact_id";
