-- +goose Up
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "url_sealed" bytea NULL;
-- by hand: the name of the key that each value is sealed with, which the value begins with
ALTER TABLE "webhooks"
  ADD COLUMN "secret_key_id" text GENERATED ALWAYS AS (encode(substring("secret_sealed" FROM 2 FOR get_byte("secret_sealed", 0)), 'escape')) STORED,
  ADD COLUMN "url_key_id" text GENERATED ALWAYS AS (encode(substring("url_sealed" FROM 2 FOR get_byte("url_sealed", 0)), 'escape')) STORED;

-- +goose Down
ALTER TABLE "webhooks" DROP COLUMN "url_key_id", DROP COLUMN "secret_key_id";
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "url_sealed";
