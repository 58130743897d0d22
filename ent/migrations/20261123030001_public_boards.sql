-- +goose Up
-- modify "boards" table
ALTER TABLE "boards" ADD COLUMN "public" boolean NOT NULL DEFAULT false;
-- modify "organizations" table
ALTER TABLE "organizations" ADD COLUMN "slug" character varying NULL, ADD COLUMN "color" character varying NULL;
-- create "logos" table
CREATE TABLE "logos" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "media_type" character varying NOT NULL, "content" bytea NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "logos_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "logo_organization_id" to table: "logos"
CREATE UNIQUE INDEX "logo_organization_id" ON "logos" ("organization_id");

-- +goose Down
-- reverse: create index "logo_organization_id" to table: "logos"
DROP INDEX "logo_organization_id";
-- reverse: create "logos" table
DROP TABLE "logos";
-- reverse: modify "organizations" table
ALTER TABLE "organizations" DROP COLUMN "color", DROP COLUMN "slug";
-- reverse: modify "boards" table
ALTER TABLE "boards" DROP COLUMN "public";
