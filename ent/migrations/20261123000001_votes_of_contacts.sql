-- +goose Up
-- modify "votes" table
ALTER TABLE "votes" ADD COLUMN "contact_id" uuid NULL;

-- +goose Down
-- reverse: modify "votes" table
ALTER TABLE "votes" DROP COLUMN "contact_id";
