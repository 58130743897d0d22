-- +goose NO TRANSACTION
-- +goose Up
-- create index "post_author_user_id" to table: "posts"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "post_author_user_id" ON "posts" ("author_user_id") WHERE (contact_id IS NULL);

-- +goose Down
-- reverse: create index "post_author_user_id" to table: "posts"
DROP INDEX CONCURRENTLY IF EXISTS "post_author_user_id";
