-- +goose Up
-- modify "api_keys" table
ALTER TABLE "api_keys" ADD COLUMN "created_by_key_id" uuid NULL;

-- +goose Down
-- reverse: modify "api_keys" table
ALTER TABLE "api_keys" DROP COLUMN "created_by_key_id";
