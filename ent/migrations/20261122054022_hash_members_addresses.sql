-- +goose Up
-- create index "comment_without_hash" to table: "comments"
CREATE INDEX "comment_without_hash" ON "comments" ("id") WHERE ((email_hash IS NULL) AND (author_user_id IS NOT NULL));
-- drop index "vote_post_id_email_hash" from table: "votes"
DROP INDEX "vote_post_id_email_hash";
-- create index "vote_post_id_email_hash" to table: "votes"
CREATE UNIQUE INDEX "vote_post_id_email_hash" ON "votes" ("post_id", "email_hash") WHERE (user_id IS NULL);
-- create index "vote_without_hash" to table: "votes"
CREATE INDEX "vote_without_hash" ON "votes" ("id") WHERE ((email_hash IS NULL) AND (user_id IS NOT NULL));

-- +goose Down
-- reverse: create index "vote_without_hash" to table: "votes"
DROP INDEX "vote_without_hash";
-- reverse: create index "vote_post_id_email_hash" to table: "votes"
DROP INDEX "vote_post_id_email_hash";
-- reverse: drop index "vote_post_id_email_hash" from table: "votes"
CREATE UNIQUE INDEX "vote_post_id_email_hash" ON "votes" ("post_id", "email_hash");
-- reverse: create index "comment_without_hash" to table: "comments"
DROP INDEX "comment_without_hash";
