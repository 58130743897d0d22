-- +goose Up
-- modify "organizations" table
ALTER TABLE "organizations" ADD COLUMN "widget_origins" jsonb NULL;
-- create "widget_secrets" table
CREATE TABLE "widget_secrets" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "secret_sealed" bytea NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "widget_secrets_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "widgetsecret_organization_id" to table: "widget_secrets"
CREATE INDEX "widgetsecret_organization_id" ON "widget_secrets" ("organization_id");

-- +goose Down
-- reverse: create index "widgetsecret_organization_id" to table: "widget_secrets"
DROP INDEX "widgetsecret_organization_id";
-- reverse: create "widget_secrets" table
DROP TABLE "widget_secrets";
-- reverse: modify "organizations" table
ALTER TABLE "organizations" DROP COLUMN "widget_origins";
