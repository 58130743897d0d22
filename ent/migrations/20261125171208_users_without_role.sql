-- +goose Up
-- modify "users" table
ALTER TABLE "users" ALTER COLUMN "role" DROP DEFAULT;

-- +goose Down
-- reverse: modify "users" table
ALTER TABLE "users" ALTER COLUMN "role" SET DEFAULT 'owner';
