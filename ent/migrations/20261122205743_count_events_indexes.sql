-- +goose NO TRANSACTION
-- +goose Up
-- create index "event_organization_id_sequence" to table: "events"
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "event_organization_id_sequence" ON "events" ("organization_id", "sequence") WHERE (sequence IS NOT NULL);

-- +goose Down
-- reverse: create index "event_organization_id_sequence" to table: "events"
DROP INDEX CONCURRENTLY IF EXISTS "event_organization_id_sequence";
