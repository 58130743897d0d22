-- +goose Up
-- modify "organizations" table
ALTER TABLE "organizations" ADD COLUMN "subscriber_mails" boolean NOT NULL DEFAULT false;
-- create "subscriber_mails" table
CREATE TABLE "subscriber_mails" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "digest_id" uuid NOT NULL, "email_hash" bytea NOT NULL, "due_at" timestamptz NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "subscriber_mails_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "subscribermail_digest_id_email_hash" to table: "subscriber_mails"
CREATE UNIQUE INDEX "subscribermail_digest_id_email_hash" ON "subscriber_mails" ("digest_id", "email_hash");
-- create index "subscribermail_due_at" to table: "subscriber_mails"
CREATE INDEX "subscribermail_due_at" ON "subscriber_mails" ("due_at");
-- create index "subscribermail_organization_id_due_at" to table: "subscriber_mails"
CREATE INDEX "subscribermail_organization_id_due_at" ON "subscriber_mails" ("organization_id", "due_at");
-- create index "subscribermail_organization_id_email_hash" to table: "subscriber_mails"
CREATE INDEX "subscribermail_organization_id_email_hash" ON "subscriber_mails" ("organization_id", "email_hash");
-- create "subscriber_updates" table
CREATE TABLE "subscriber_updates" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "post_id" uuid NULL, "entry_id" uuid NULL, "previous_status" character varying NULL, "status" character varying NULL, "digest_id" uuid NULL, PRIMARY KEY ("id"), CONSTRAINT "subscriber_updates_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "subscriberupdate_created_at" to table: "subscriber_updates"
CREATE INDEX "subscriberupdate_created_at" ON "subscriber_updates" ("created_at") WHERE (digest_id IS NULL);
-- create index "subscriberupdate_digest_id_post_id" to table: "subscriber_updates"
CREATE INDEX "subscriberupdate_digest_id_post_id" ON "subscriber_updates" ("digest_id", "post_id") WHERE (digest_id IS NOT NULL);
-- create index "subscriberupdate_organization_id_created_at" to table: "subscriber_updates"
CREATE INDEX "subscriberupdate_organization_id_created_at" ON "subscriber_updates" ("organization_id", "created_at") WHERE (digest_id IS NULL);
-- create "subscriptions" table
CREATE TABLE "subscriptions" ("id" uuid NOT NULL, "organization_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "email_hash" bytea NOT NULL, "status_updates" boolean NOT NULL DEFAULT true, "changelog" boolean NOT NULL DEFAULT false, "language" character varying NOT NULL DEFAULT 'en', PRIMARY KEY ("id"), CONSTRAINT "subscriptions_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "subscription_organization_id_email_hash" to table: "subscriptions"
CREATE UNIQUE INDEX "subscription_organization_id_email_hash" ON "subscriptions" ("organization_id", "email_hash");
-- Addresses that take no e-mail, of all organizations together, as hashes alone.
CREATE TABLE "mail_suppressions" ("email_hash" bytea NOT NULL, "created_at" timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ("email_hash"));
-- What a person chose follows the contact to another address; of two choices the stricter one holds.
-- Here and not in the program: the one of the release before changes addresses, too.
-- +goose StatementBegin
CREATE FUNCTION "follow_choice"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO subscriptions AS s (id, organization_id, created_at, updated_at, email_hash, status_updates, changelog, language)
  SELECT gen_random_uuid(), o.organization_id, o.created_at, o.updated_at, NEW.email_hash, o.status_updates, o.changelog, o.language
  FROM subscriptions o WHERE o.organization_id = NEW.organization_id AND o.email_hash = OLD.email_hash
  ON CONFLICT (organization_id, email_hash) DO UPDATE
    SET status_updates = s.status_updates AND EXCLUDED.status_updates, changelog = s.changelog AND EXCLUDED.changelog;
  -- Of the address of before stays that somebody wants nothing.
  DELETE FROM subscriptions o WHERE o.organization_id = NEW.organization_id AND o.email_hash = OLD.email_hash AND o.status_updates
    AND NOT EXISTS (SELECT FROM contacts c WHERE c.organization_id = NEW.organization_id AND c.email_hash = OLD.email_hash);
  RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER "contact_is_followed_by_choice" AFTER UPDATE OF "email_hash" ON "contacts" FOR EACH ROW
  WHEN (OLD.email_hash <> NEW.email_hash) EXECUTE FUNCTION "follow_choice"();

-- +goose Down
DROP TRIGGER "contact_is_followed_by_choice" ON "contacts";
DROP FUNCTION "follow_choice"();
DROP TABLE "mail_suppressions";
-- reverse: create index "subscription_organization_id_email_hash" to table: "subscriptions"
DROP INDEX "subscription_organization_id_email_hash";
-- reverse: create "subscriptions" table
DROP TABLE "subscriptions";
-- reverse: create index "subscriberupdate_organization_id_created_at" to table: "subscriber_updates"
DROP INDEX "subscriberupdate_organization_id_created_at";
-- reverse: create index "subscriberupdate_digest_id_post_id" to table: "subscriber_updates"
DROP INDEX "subscriberupdate_digest_id_post_id";
-- reverse: create index "subscriberupdate_created_at" to table: "subscriber_updates"
DROP INDEX "subscriberupdate_created_at";
-- reverse: create "subscriber_updates" table
DROP TABLE "subscriber_updates";
-- reverse: create index "subscribermail_organization_id_email_hash" to table: "subscriber_mails"
DROP INDEX "subscribermail_organization_id_email_hash";
-- reverse: create index "subscribermail_organization_id_due_at" to table: "subscriber_mails"
DROP INDEX "subscribermail_organization_id_due_at";
-- reverse: create index "subscribermail_due_at" to table: "subscriber_mails"
DROP INDEX "subscribermail_due_at";
-- reverse: create index "subscribermail_digest_id_email_hash" to table: "subscriber_mails"
DROP INDEX "subscribermail_digest_id_email_hash";
-- reverse: create "subscriber_mails" table
DROP TABLE "subscriber_mails";
-- reverse: modify "organizations" table
ALTER TABLE "organizations" DROP COLUMN "subscriber_mails";
