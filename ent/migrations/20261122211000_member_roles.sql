-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "role" character varying NULL DEFAULT 'owner';

-- +goose Down
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "role";
