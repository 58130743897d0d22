-- +goose NO TRANSACTION
-- +goose Up
-- create index "webhook_deleted" to table: "webhooks"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "webhook_deleted" ON "webhooks" ("id") WHERE (deleted_at IS NOT NULL);

-- +goose Down
-- reverse: create index "webhook_deleted" to table: "webhooks"
DROP INDEX CONCURRENTLY IF EXISTS "webhook_deleted";
