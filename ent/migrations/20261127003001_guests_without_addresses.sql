-- +goose Up
-- modify "users" table
ALTER TABLE "users" ALTER COLUMN "email" DROP NOT NULL;

-- +goose Down
-- reverse: modify "users" table
UPDATE "users" SET "email" = id::text WHERE "email" IS NULL;
ALTER TABLE "users" ALTER COLUMN "email" SET NOT NULL;
