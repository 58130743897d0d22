-- +goose NO TRANSACTION
-- +goose Up
-- drop index "comment_without_hash" from table: "comments"
DROP INDEX CONCURRENTLY IF EXISTS "comment_without_hash";
-- drop index "vote_without_hash" from table: "votes"
DROP INDEX CONCURRENTLY IF EXISTS "vote_without_hash";

-- +goose Down
-- reverse: drop index "vote_without_hash" from table: "votes"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "vote_without_hash" ON "votes" ("id") WHERE ((email_hash IS NULL) AND (user_id IS NOT NULL));
-- reverse: drop index "comment_without_hash" from table: "comments"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "comment_without_hash" ON "comments" ("id") WHERE ((email_hash IS NULL) AND (author_user_id IS NOT NULL));
