-- +goose Up
-- modify "deliveries" table
ALTER TABLE "deliveries" ADD COLUMN "schedule_start" bigint NOT NULL DEFAULT 0, ADD COLUMN "workflow_run_id" character varying NULL;
-- create index "delivery_replay_of" to table: "deliveries"
CREATE INDEX "delivery_replay_of" ON "deliveries" ("replay_of") WHERE (replay_of IS NOT NULL);
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "disabled_reason" character varying NULL, ADD COLUMN "consecutive_failures" bigint NOT NULL DEFAULT 0, ADD COLUMN "disabled_by_run" character varying NULL;
-- what was disabled until now, its owner disabled
UPDATE "webhooks" SET "disabled_reason" = 'requested' WHERE NOT "enabled";
-- create index "webhook_consecutive_failures" to table: "webhooks"
CREATE INDEX "webhook_consecutive_failures" ON "webhooks" ("consecutive_failures") WHERE (consecutive_failures > 0);
-- create "recoveries" table
CREATE TABLE "recoveries" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "since" timestamptz NOT NULL, "until" timestamptz NOT NULL, "event_type" character varying NULL, "status" character varying NOT NULL DEFAULT 'running', "stopped_reason" character varying NULL, "total" bigint NULL, "replayed" bigint NOT NULL DEFAULT 0, "position" uuid NULL, "ended_at" timestamptz NULL, "webhook_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "recoveries_webhooks_webhook" FOREIGN KEY ("organization_id", "webhook_id") REFERENCES "webhooks" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create index "recovery_created_at" to table: "recoveries"
CREATE INDEX "recovery_created_at" ON "recoveries" ("created_at") WHERE ((status)::text = 'running'::text);
-- create index "recovery_webhook_id_id" to table: "recoveries"
CREATE INDEX "recovery_webhook_id_id" ON "recoveries" ("webhook_id", "id");

-- +goose Down
-- reverse: create index "recovery_webhook_id_id" to table: "recoveries"
DROP INDEX "recovery_webhook_id_id";
-- reverse: create index "recovery_created_at" to table: "recoveries"
DROP INDEX "recovery_created_at";
-- reverse: create "recoveries" table
DROP TABLE "recoveries";
-- reverse: create index "webhook_consecutive_failures" to table: "webhooks"
DROP INDEX "webhook_consecutive_failures";
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "disabled_by_run", DROP COLUMN "consecutive_failures", DROP COLUMN "disabled_reason";
-- reverse: create index "delivery_replay_of" to table: "deliveries"
DROP INDEX "delivery_replay_of";
-- reverse: modify "deliveries" table
ALTER TABLE "deliveries" DROP COLUMN "workflow_run_id", DROP COLUMN "schedule_start";
