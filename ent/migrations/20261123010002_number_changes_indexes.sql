-- +goose NO TRANSACTION
-- +goose Up
-- create index "comment_post_id_changed_in_id" to table: "comments"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "comment_post_id_changed_in_id" ON "comments" ("post_id", "changed_in", "id");
-- create index "contact_organization_id_changed_in_id" to table: "contacts"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "contact_organization_id_changed_in_id" ON "contacts" ("organization_id", "changed_in", "id");
-- create index "post_organization_id_changed_in_id" to table: "posts"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "post_organization_id_changed_in_id" ON "posts" ("organization_id", "changed_in", "id");

-- +goose Down
-- reverse: create index "post_organization_id_changed_in_id" to table: "posts"
DROP INDEX CONCURRENTLY IF EXISTS "post_organization_id_changed_in_id";
-- reverse: create index "contact_organization_id_changed_in_id" to table: "contacts"
DROP INDEX CONCURRENTLY IF EXISTS "contact_organization_id_changed_in_id";
-- reverse: create index "comment_post_id_changed_in_id" to table: "comments"
DROP INDEX CONCURRENTLY IF EXISTS "comment_post_id_changed_in_id";
