-- +goose Up
-- create "audit_entries" table
CREATE TABLE "audit_entries" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "user_id" uuid NULL, "api_key_id" uuid NULL, "action" character varying NOT NULL, "resource_kind" character varying NOT NULL, "resource_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "audit_entries_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "auditentry_organization_id_action_id" to table: "audit_entries"
CREATE INDEX "auditentry_organization_id_action_id" ON "audit_entries" ("organization_id", "action", "id");
-- create index "auditentry_organization_id_api_key_id_id" to table: "audit_entries"
CREATE INDEX "auditentry_organization_id_api_key_id_id" ON "audit_entries" ("organization_id", "api_key_id", "id");
-- create index "auditentry_organization_id_id" to table: "audit_entries"
CREATE INDEX "auditentry_organization_id_id" ON "audit_entries" ("organization_id", "id");
-- create index "auditentry_organization_id_resource_id_id" to table: "audit_entries"
CREATE INDEX "auditentry_organization_id_resource_id_id" ON "audit_entries" ("organization_id", "resource_id", "id");
-- create index "auditentry_organization_id_user_id_id" to table: "audit_entries"
CREATE INDEX "auditentry_organization_id_user_id_id" ON "audit_entries" ("organization_id", "user_id", "id");
-- create "subject_requests" table
CREATE TABLE "subject_requests" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "kind" character varying NOT NULL, "contact_id" uuid NOT NULL, "text" character varying NULL, "same_address" jsonb NULL, "status" character varying NOT NULL DEFAULT 'running', "stopped_reason" character varying NULL, "stage" character varying NOT NULL, "position" uuid NULL, "records" bigint NOT NULL DEFAULT 0, "finished_at" timestamptz NULL, "expires_at" timestamptz NULL, PRIMARY KEY ("id"), CONSTRAINT "subject_requests_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "subject_requests_organization_id_id" to table: "subject_requests"
CREATE UNIQUE INDEX "subject_requests_organization_id_id" ON "subject_requests" ("organization_id", "id");
-- create index "subjectrequest_contact_id" to table: "subject_requests"
CREATE INDEX "subjectrequest_contact_id" ON "subject_requests" ("contact_id");
-- create index "subjectrequest_contact_id_kind" to table: "subject_requests"
CREATE UNIQUE INDEX "subjectrequest_contact_id_kind" ON "subject_requests" ("contact_id", "kind") WHERE ((status)::text = 'running'::text);
-- create index "subjectrequest_created_at" to table: "subject_requests"
CREATE INDEX "subjectrequest_created_at" ON "subject_requests" ("created_at") WHERE ((status)::text = 'running'::text);
-- create index "subjectrequest_expires_at" to table: "subject_requests"
CREATE INDEX "subjectrequest_expires_at" ON "subject_requests" ("expires_at") WHERE (expires_at IS NOT NULL);
-- create "subject_records" table
CREATE TABLE "subject_records" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "kind" character varying NOT NULL, "item_id" uuid NOT NULL, "sealed" bytea NULL, "request_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "subject_records_subject_requests_request" FOREIGN KEY ("organization_id", "request_id") REFERENCES "subject_requests" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create index "subjectrecord_request_id_id" to table: "subject_records"
CREATE INDEX "subjectrecord_request_id_id" ON "subject_records" ("request_id", "id");
-- create index "subjectrecord_request_id_item_id" to table: "subject_records"
CREATE UNIQUE INDEX "subjectrecord_request_id_item_id" ON "subject_records" ("request_id", "item_id");

-- +goose Down
-- reverse: create index "subjectrecord_request_id_item_id" to table: "subject_records"
DROP INDEX "subjectrecord_request_id_item_id";
-- reverse: create index "subjectrecord_request_id_id" to table: "subject_records"
DROP INDEX "subjectrecord_request_id_id";
-- reverse: create "subject_records" table
DROP TABLE "subject_records";
-- reverse: create index "subjectrequest_expires_at" to table: "subject_requests"
DROP INDEX "subjectrequest_expires_at";
-- reverse: create index "subjectrequest_created_at" to table: "subject_requests"
DROP INDEX "subjectrequest_created_at";
-- reverse: create index "subjectrequest_contact_id_kind" to table: "subject_requests"
DROP INDEX "subjectrequest_contact_id_kind";
-- reverse: create index "subjectrequest_contact_id" to table: "subject_requests"
DROP INDEX "subjectrequest_contact_id";
-- reverse: create index "subject_requests_organization_id_id" to table: "subject_requests"
DROP INDEX "subject_requests_organization_id_id";
-- reverse: create "subject_requests" table
DROP TABLE "subject_requests";
-- reverse: create index "auditentry_organization_id_user_id_id" to table: "audit_entries"
DROP INDEX "auditentry_organization_id_user_id_id";
-- reverse: create index "auditentry_organization_id_resource_id_id" to table: "audit_entries"
DROP INDEX "auditentry_organization_id_resource_id_id";
-- reverse: create index "auditentry_organization_id_id" to table: "audit_entries"
DROP INDEX "auditentry_organization_id_id";
-- reverse: create index "auditentry_organization_id_api_key_id_id" to table: "audit_entries"
DROP INDEX "auditentry_organization_id_api_key_id_id";
-- reverse: create index "auditentry_organization_id_action_id" to table: "audit_entries"
DROP INDEX "auditentry_organization_id_action_id";
-- reverse: create "audit_entries" table
DROP TABLE "audit_entries";
