-- +goose Up
-- create "organizations" table
CREATE TABLE "organizations" (
  "id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "name" character varying NOT NULL,
  "plan" character varying NOT NULL DEFAULT 'business',
  "billing_state" character varying NOT NULL DEFAULT 'active',
  PRIMARY KEY ("id")
);
-- create "users" table
CREATE TABLE "users" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "email" character varying NOT NULL,
  "name" character varying NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "users_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "user_organization_id_email" to table: "users"
CREATE UNIQUE INDEX "user_organization_id_email" ON "users" ("organization_id", "email");
-- create index "users_organization_id_id" to table: "users"
CREATE UNIQUE INDEX "users_organization_id_id" ON "users" ("organization_id", "id");
-- create "api_keys" table
CREATE TABLE "api_keys" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "name" character varying NOT NULL,
  "hash" bytea NOT NULL,
  "prefix" character varying NOT NULL,
  "scope" character varying NOT NULL,
  "rate_limit" bigint NULL,
  "expires_at" timestamptz NULL,
  "revoked_at" timestamptz NULL,
  "last_used_at" timestamptz NULL,
  "user_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "api_keys_users_user" FOREIGN KEY ("organization_id", "user_id") REFERENCES "users" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "apikey_hash" to table: "api_keys"
CREATE UNIQUE INDEX "apikey_hash" ON "api_keys" ("hash");
-- create index "apikey_organization_id_created_at" to table: "api_keys"
CREATE INDEX "apikey_organization_id_created_at" ON "api_keys" ("organization_id", "created_at");
-- create "events" table
CREATE TABLE "events" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "type" character varying NOT NULL,
  "payload" bytea NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "events_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "event_created_at" to table: "events"
CREATE INDEX "event_created_at" ON "events" ("created_at");
-- create index "events_organization_id_id" to table: "events"
CREATE UNIQUE INDEX "events_organization_id_id" ON "events" ("organization_id", "id");
-- create "webhooks" table
CREATE TABLE "webhooks" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "url" character varying NOT NULL,
  "events" jsonb NOT NULL,
  "enabled" boolean NOT NULL DEFAULT true,
  "secret_sealed" bytea NOT NULL,
  "disabled_at" timestamptz NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "webhooks_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "webhooks_organization_id_id" to table: "webhooks"
CREATE UNIQUE INDEX "webhooks_organization_id_id" ON "webhooks" ("organization_id", "id");
-- create "deliveries" table
CREATE TABLE "deliveries" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "event_type" character varying NOT NULL,
  "status" character varying NOT NULL DEFAULT 'pending',
  "attempt_count" bigint NOT NULL DEFAULT 0,
  "next_attempt_at" timestamptz NULL,
  "last_attempt_at" timestamptz NULL,
  "last_response_status" bigint NULL,
  "last_error" character varying NULL,
  "duration_ms" bigint NULL,
  "delivered_at" timestamptz NULL,
  "failed_at" timestamptz NULL,
  "replay_of" uuid NULL,
  "workflow_id" character varying NULL,
  "lease_until" timestamptz NULL,
  "webhook_id" uuid NOT NULL,
  "event_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "deliveries_events_event" FOREIGN KEY ("organization_id", "event_id") REFERENCES "events" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION,
  CONSTRAINT "deliveries_webhooks_webhook" FOREIGN KEY ("organization_id", "webhook_id") REFERENCES "webhooks" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE
);
-- create index "deliveries_organization_id_id" to table: "deliveries"
CREATE UNIQUE INDEX "deliveries_organization_id_id" ON "deliveries" ("organization_id", "id");
-- create index "delivery_event_id" to table: "deliveries"
CREATE INDEX "delivery_event_id" ON "deliveries" ("event_id");
-- create index "delivery_next_attempt_at" to table: "deliveries"
CREATE INDEX "delivery_next_attempt_at" ON "deliveries" ("next_attempt_at") WHERE ((status)::text = 'pending'::text);
-- create index "delivery_webhook_id_id" to table: "deliveries"
CREATE INDEX "delivery_webhook_id_id" ON "deliveries" ("webhook_id", "id");
-- create "attempts" table
CREATE TABLE "attempts" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "number" bigint NOT NULL,
  "started_at" timestamptz NOT NULL,
  "duration_ms" bigint NOT NULL,
  "response_status" bigint NULL,
  "response_body" bytea NULL,
  "error" character varying NULL,
  "delivery_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "attempts_deliveries_delivery" FOREIGN KEY ("organization_id", "delivery_id") REFERENCES "deliveries" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE
);
-- create index "attempt_delivery_id_number" to table: "attempts"
CREATE UNIQUE INDEX "attempt_delivery_id_number" ON "attempts" ("delivery_id", "number");
-- create "boards" table
CREATE TABLE "boards" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "name" character varying NOT NULL,
  "slug" character varying NOT NULL,
  "description" character varying NOT NULL DEFAULT '',
  "show_changelog" boolean NOT NULL DEFAULT true,
  "show_roadmap" boolean NOT NULL DEFAULT true,
  PRIMARY KEY ("id"),
  CONSTRAINT "boards_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "board_organization_id_slug" to table: "boards"
CREATE UNIQUE INDEX "board_organization_id_slug" ON "boards" ("organization_id", "slug");
-- create index "boards_organization_id_id" to table: "boards"
CREATE UNIQUE INDEX "boards_organization_id_id" ON "boards" ("organization_id", "id");
-- create "changelog_entries" table
CREATE TABLE "changelog_entries" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "title" character varying NOT NULL,
  "slug" character varying NOT NULL,
  "version" character varying NULL,
  "body_text" text NOT NULL DEFAULT '',
  "body_json" json NULL,
  "published_at" timestamptz NULL,
  "state" character varying NOT NULL DEFAULT 'draft',
  "board_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "changelog_entries_boards_board" FOREIGN KEY ("organization_id", "board_id") REFERENCES "boards" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "changelog_entries_organization_id_id" to table: "changelog_entries"
CREATE UNIQUE INDEX "changelog_entries_organization_id_id" ON "changelog_entries" ("organization_id", "id");
-- create index "changelogentry_board_id_id" to table: "changelog_entries"
CREATE INDEX "changelogentry_board_id_id" ON "changelog_entries" ("board_id", "id");
-- create index "changelogentry_board_id_slug" to table: "changelog_entries"
CREATE UNIQUE INDEX "changelogentry_board_id_slug" ON "changelog_entries" ("board_id", "slug");
-- create "contacts" table
CREATE TABLE "contacts" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "external_user_id" character varying NULL,
  "email" character varying NULL,
  "email_hash" bytea NULL,
  "name" character varying NULL,
  "plan" character varying NULL,
  "mrr_cents" bigint NULL,
  "currency" character varying NULL,
  "metadata" json NOT NULL,
  "source" character varying NOT NULL,
  "consent_basis" character varying NOT NULL,
  "first_seen_at" timestamptz NOT NULL,
  "last_seen_at" timestamptz NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "contacts_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "contact_organization_id_external_user_id" to table: "contacts"
CREATE UNIQUE INDEX "contact_organization_id_external_user_id" ON "contacts" ("organization_id", "external_user_id") WHERE (external_user_id IS NOT NULL);
-- create index "contacts_organization_id_id" to table: "contacts"
CREATE UNIQUE INDEX "contacts_organization_id_id" ON "contacts" ("organization_id", "id");
-- create "posts" table
CREATE TABLE "posts" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "title" character varying NOT NULL,
  "slug" character varying NOT NULL,
  "status" character varying NOT NULL DEFAULT 'open',
  "body_text" text NOT NULL DEFAULT '',
  "body_json" json NULL,
  "hide_from_roadmap" boolean NOT NULL DEFAULT false,
  "vote_count" bigint NOT NULL DEFAULT 0,
  "comment_count" bigint NOT NULL DEFAULT 0,
  "merged_into_id" uuid NULL,
  "last_activity_at" timestamptz NOT NULL,
  "deleted_at" timestamptz NULL,
  "board_id" uuid NOT NULL,
  "contact_id" uuid NULL,
  "author_user_id" uuid NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "posts_boards_board" FOREIGN KEY ("organization_id", "board_id") REFERENCES "boards" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION,
  CONSTRAINT "posts_contacts_contact" FOREIGN KEY ("organization_id", "contact_id") REFERENCES "contacts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION,
  CONSTRAINT "posts_users_author" FOREIGN KEY ("organization_id", "author_user_id") REFERENCES "users" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "post_board_id_id" to table: "posts"
CREATE INDEX "post_board_id_id" ON "posts" ("board_id", "id") WHERE (deleted_at IS NULL);
-- create index "post_board_id_slug" to table: "posts"
CREATE UNIQUE INDEX "post_board_id_slug" ON "posts" ("board_id", "slug") WHERE (deleted_at IS NULL);
-- create index "post_contact_id_id" to table: "posts"
CREATE INDEX "post_contact_id_id" ON "posts" ("contact_id", "id") WHERE (deleted_at IS NULL);
-- create index "posts_organization_id_id" to table: "posts"
CREATE UNIQUE INDEX "posts_organization_id_id" ON "posts" ("organization_id", "id");
-- create "changelog_links" table
CREATE TABLE "changelog_links" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "position" bigint NOT NULL,
  "entry_id" uuid NOT NULL,
  "post_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "changelog_links_changelog_entries_entry" FOREIGN KEY ("organization_id", "entry_id") REFERENCES "changelog_entries" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE,
  CONSTRAINT "changelog_links_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "changeloglink_entry_id_post_id" to table: "changelog_links"
CREATE UNIQUE INDEX "changeloglink_entry_id_post_id" ON "changelog_links" ("entry_id", "post_id");
-- create index "changeloglink_post_id" to table: "changelog_links"
CREATE INDEX "changeloglink_post_id" ON "changelog_links" ("post_id");
-- create "comments" table
CREATE TABLE "comments" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "parent_id" uuid NULL,
  "body_text" text NOT NULL DEFAULT '',
  "body_json" json NULL,
  "email_hash" bytea NULL,
  "deleted_at" timestamptz NULL,
  "post_id" uuid NOT NULL,
  "author_user_id" uuid NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "comments_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION,
  CONSTRAINT "comments_users_author" FOREIGN KEY ("organization_id", "author_user_id") REFERENCES "users" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "comment_organization_id_email_hash" to table: "comments"
CREATE INDEX "comment_organization_id_email_hash" ON "comments" ("organization_id", "email_hash") WHERE (email_hash IS NOT NULL);
-- create index "comment_post_id_id" to table: "comments"
CREATE INDEX "comment_post_id_id" ON "comments" ("post_id", "id");
-- create "tags" table
CREATE TABLE "tags" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "updated_at" timestamptz NOT NULL,
  "name" character varying NOT NULL,
  "name_key" character varying NOT NULL,
  "color" character varying NOT NULL,
  "board_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "tags_boards_board" FOREIGN KEY ("organization_id", "board_id") REFERENCES "boards" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "tag_board_id_id" to table: "tags"
CREATE INDEX "tag_board_id_id" ON "tags" ("board_id", "id");
-- create index "tag_board_id_name_key" to table: "tags"
CREATE UNIQUE INDEX "tag_board_id_name_key" ON "tags" ("board_id", "name_key");
-- create index "tags_organization_id_id" to table: "tags"
CREATE UNIQUE INDEX "tags_organization_id_id" ON "tags" ("organization_id", "id");
-- create "post_tags" table
CREATE TABLE "post_tags" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "post_id" uuid NOT NULL,
  "tag_id" uuid NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "post_tags_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE,
  CONSTRAINT "post_tags_tags_tag" FOREIGN KEY ("organization_id", "tag_id") REFERENCES "tags" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE
);
-- create index "posttag_post_id_tag_id" to table: "post_tags"
CREATE UNIQUE INDEX "posttag_post_id_tag_id" ON "post_tags" ("post_id", "tag_id");
-- create index "posttag_tag_id_post_id" to table: "post_tags"
CREATE INDEX "posttag_tag_id_post_id" ON "post_tags" ("tag_id", "post_id");
-- create "votes" table
CREATE TABLE "votes" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "email_hash" bytea NULL,
  "post_id" uuid NOT NULL,
  "user_id" uuid NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "votes_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION,
  CONSTRAINT "votes_users_user" FOREIGN KEY ("organization_id", "user_id") REFERENCES "users" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION
);
-- create index "vote_organization_id_email_hash" to table: "votes"
CREATE INDEX "vote_organization_id_email_hash" ON "votes" ("organization_id", "email_hash") WHERE (email_hash IS NOT NULL);
-- create index "vote_post_id_email_hash" to table: "votes"
CREATE UNIQUE INDEX "vote_post_id_email_hash" ON "votes" ("post_id", "email_hash");
-- create index "vote_post_id_id" to table: "votes"
CREATE INDEX "vote_post_id_id" ON "votes" ("post_id", "id");
-- create index "vote_post_id_user_id" to table: "votes"
CREATE UNIQUE INDEX "vote_post_id_user_id" ON "votes" ("post_id", "user_id");
-- By hand, see tables in internal/store/migrate.go: the table's references to itself.
CREATE UNIQUE INDEX "comment_organization_id_id" ON "comments" ("organization_id", "id");
ALTER TABLE "posts" ADD CONSTRAINT "posts_self_merged_into" FOREIGN KEY ("organization_id", "merged_into_id") REFERENCES "posts" ("organization_id", "id");
ALTER TABLE "comments" ADD CONSTRAINT "comments_self_parent" FOREIGN KEY ("organization_id", "parent_id") REFERENCES "comments" ("organization_id", "id");
