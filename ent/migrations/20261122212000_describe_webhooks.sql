-- +goose Up
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "description" character varying NULL, ADD COLUMN "metadata" json NULL;

-- +goose Down
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "metadata", DROP COLUMN "description";
