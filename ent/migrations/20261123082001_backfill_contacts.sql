-- +goose Up
-- create "contact_backfills" table
CREATE TABLE "contact_backfills" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "active_before" timestamptz NOT NULL, "status" character varying NOT NULL DEFAULT 'running', "addresses" bigint NOT NULL, "invalid_lines" bigint NOT NULL DEFAULT 0, "contacts_created" bigint NOT NULL DEFAULT 0, "contacts_existed" bigint NOT NULL DEFAULT 0, "contacts_left_out" bigint NOT NULL DEFAULT 0, "finished_at" timestamptz NULL, PRIMARY KEY ("id"), CONSTRAINT "contact_backfills_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "contact_backfills_organization_id_id" to table: "contact_backfills"
CREATE UNIQUE INDEX "contact_backfills_organization_id_id" ON "contact_backfills" ("organization_id", "id");
-- create index "contactbackfill_created_at" to table: "contact_backfills"
CREATE INDEX "contactbackfill_created_at" ON "contact_backfills" ("created_at") WHERE ((status)::text = 'running'::text);
-- create "backfill_addresses" table
CREATE TABLE "backfill_addresses" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "email_hash" bytea NOT NULL, "sealed" bytea NOT NULL, "backfill_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "backfill_addresses_contact_backfills_backfill" FOREIGN KEY ("organization_id", "backfill_id") REFERENCES "contact_backfills" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "backfilladdress_backfill_id_id" to table: "backfill_addresses"
CREATE INDEX "backfilladdress_backfill_id_id" ON "backfill_addresses" ("backfill_id", "id");
-- create index "backfilladdress_organization_id_email_hash" to table: "backfill_addresses"
CREATE INDEX "backfilladdress_organization_id_email_hash" ON "backfill_addresses" ("organization_id", "email_hash");

-- +goose Down
-- reverse: create index "backfilladdress_organization_id_email_hash" to table: "backfill_addresses"
DROP INDEX "backfilladdress_organization_id_email_hash";
-- reverse: create index "backfilladdress_backfill_id_id" to table: "backfill_addresses"
DROP INDEX "backfilladdress_backfill_id_id";
-- reverse: create "backfill_addresses" table
DROP TABLE "backfill_addresses";
-- reverse: create index "contactbackfill_created_at" to table: "contact_backfills"
DROP INDEX "contactbackfill_created_at";
-- reverse: create index "contact_backfills_organization_id_id" to table: "contact_backfills"
DROP INDEX "contact_backfills_organization_id_id";
-- reverse: create "contact_backfills" table
DROP TABLE "contact_backfills";
