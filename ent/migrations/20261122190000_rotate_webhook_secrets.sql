-- +goose Up
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "former_secret_sealed" bytea NULL, ADD COLUMN "former_secret_until" timestamptz NULL;

-- +goose Down
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "former_secret_until", DROP COLUMN "former_secret_sealed";
