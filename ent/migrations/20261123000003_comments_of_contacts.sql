-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "kind" character varying NOT NULL DEFAULT 'member', ADD COLUMN "contact_id" uuid NULL, ADD COLUMN "email_hash" bytea NULL;
-- modify "comments" table
ALTER TABLE "comments" ADD COLUMN "contact_id" uuid NULL;

-- +goose Down
-- reverse: modify "comments" table
ALTER TABLE "comments" DROP COLUMN "contact_id";
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "email_hash", DROP COLUMN "contact_id", DROP COLUMN "kind";
