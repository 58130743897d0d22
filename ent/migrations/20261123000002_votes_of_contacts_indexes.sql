-- +goose NO TRANSACTION
-- +goose Up
-- create index "vote_contact_id_post_id" to table: "votes"
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "vote_contact_id_post_id" ON "votes" ("contact_id", "post_id") WHERE (contact_id IS NOT NULL);

-- +goose Down
-- reverse: create index "vote_contact_id_post_id" to table: "votes"
DROP INDEX CONCURRENTLY IF EXISTS "vote_contact_id_post_id";
