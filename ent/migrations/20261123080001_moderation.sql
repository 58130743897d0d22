-- +goose Up
-- modify "boards" table
ALTER TABLE "boards" ADD COLUMN "moderated" boolean NOT NULL DEFAULT false;

-- +goose Down
-- reverse: modify "boards" table
ALTER TABLE "boards" DROP COLUMN "moderated";
