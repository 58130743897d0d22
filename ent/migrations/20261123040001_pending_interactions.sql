-- +goose Up
-- modify "organizations" table
ALTER TABLE "organizations" ADD COLUMN "public_closed" boolean NOT NULL DEFAULT false;
-- create "interactions" table
CREATE TABLE "interactions" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "token_hash" bytea NOT NULL, "email_hash" bytea NOT NULL, "content_sealed" bytea NOT NULL, "due_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "interactions_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "interaction_due_at" to table: "interactions"
CREATE INDEX "interaction_due_at" ON "interactions" ("due_at");
-- create index "interaction_organization_id_email_hash" to table: "interactions"
CREATE INDEX "interaction_organization_id_email_hash" ON "interactions" ("organization_id", "email_hash");
-- create index "interaction_token_hash" to table: "interactions"
CREATE UNIQUE INDEX "interaction_token_hash" ON "interactions" ("token_hash");

-- +goose Down
-- reverse: create index "interaction_token_hash" to table: "interactions"
DROP INDEX "interaction_token_hash";
-- reverse: create index "interaction_organization_id_email_hash" to table: "interactions"
DROP INDEX "interaction_organization_id_email_hash";
-- reverse: create index "interaction_due_at" to table: "interactions"
DROP INDEX "interaction_due_at";
-- reverse: create "interactions" table
DROP TABLE "interactions";
-- reverse: modify "organizations" table
ALTER TABLE "organizations" DROP COLUMN "public_closed";
