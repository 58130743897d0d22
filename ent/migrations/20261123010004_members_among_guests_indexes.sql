-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE "votes" VALIDATE CONSTRAINT "votes_contacts_contact";
ALTER TABLE "comments" VALIDATE CONSTRAINT "comments_contacts_contact";
-- Guests are as many as comment, members a thousand at most: what is asked of members goes by
-- these two.
-- create index "user_organization_id_id" to table: "users"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "user_organization_id_id" ON "users" ("organization_id", "id") WHERE (role IS NOT NULL);
-- By hand: Ent has no indexes on expressions.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "users_by_address" ON "users" ("organization_id", lower("email")) WHERE (kind = 'member');

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "users_by_address";
-- reverse: create index "user_organization_id_id" to table: "users"
DROP INDEX CONCURRENTLY IF EXISTS "user_organization_id_id";
