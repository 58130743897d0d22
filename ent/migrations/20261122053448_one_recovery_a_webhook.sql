-- +goose Up
-- By hand: of the recoveries of a webhook that run beside each other, the oldest goes on. If
-- one more is made before the index is there, nothing is changed, and migrating again does it.
UPDATE "recoveries" r SET "status" = 'stopped', "stopped_reason" = 'canceled', "ended_at" = now()
WHERE r."status" = 'running' AND EXISTS (
  SELECT FROM "recoveries" older WHERE older."webhook_id" = r."webhook_id" AND older."status" = 'running' AND older."id" < r."id"
);
-- create index "recovery_webhook_id" to table: "recoveries"
CREATE UNIQUE INDEX "recovery_webhook_id" ON "recoveries" ("webhook_id") WHERE ((status)::text = 'running'::text);

-- +goose Down
-- reverse: create index "recovery_webhook_id" to table: "recoveries"
DROP INDEX "recovery_webhook_id";
