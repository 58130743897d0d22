-- +goose Up
-- create "submissions" table
CREATE TABLE "submissions" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "kind" character varying NOT NULL, "reason" character varying NOT NULL, "title" character varying NOT NULL DEFAULT '', "body_text" text NOT NULL DEFAULT '', "email_hash" bytea NOT NULL, "person_sealed" bytea NULL, "board_id" uuid NOT NULL, "post_id" uuid NULL, PRIMARY KEY ("id"), CONSTRAINT "submissions_boards_board" FOREIGN KEY ("organization_id", "board_id") REFERENCES "boards" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "submissions_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create index "submission_board_id_id" to table: "submissions"
CREATE INDEX "submission_board_id_id" ON "submissions" ("board_id", "id");
-- create index "submission_organization_id_email_hash" to table: "submissions"
CREATE INDEX "submission_organization_id_email_hash" ON "submissions" ("organization_id", "email_hash");
-- create index "submission_organization_id_id" to table: "submissions"
CREATE INDEX "submission_organization_id_id" ON "submissions" ("organization_id", "id");
-- create index "submission_post_id" to table: "submissions"
CREATE INDEX "submission_post_id" ON "submissions" ("post_id") WHERE (post_id IS NOT NULL);
-- create "word_lists" table
CREATE TABLE "word_lists" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "words" jsonb NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "word_lists_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "wordlist_organization_id" to table: "word_lists"
CREATE UNIQUE INDEX "wordlist_organization_id" ON "word_lists" ("organization_id");

-- +goose Down
-- reverse: create index "wordlist_organization_id" to table: "word_lists"
DROP INDEX "wordlist_organization_id";
-- reverse: create "word_lists" table
DROP TABLE "word_lists";
-- reverse: create index "submission_post_id" to table: "submissions"
DROP INDEX "submission_post_id";
-- reverse: create index "submission_organization_id_id" to table: "submissions"
DROP INDEX "submission_organization_id_id";
-- reverse: create index "submission_organization_id_email_hash" to table: "submissions"
DROP INDEX "submission_organization_id_email_hash";
-- reverse: create index "submission_board_id_id" to table: "submissions"
DROP INDEX "submission_board_id_id";
-- reverse: create "submissions" table
DROP TABLE "submissions";
