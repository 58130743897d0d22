-- +goose Up
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "deleted_at" timestamptz NULL;

-- +goose Down
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "deleted_at";
