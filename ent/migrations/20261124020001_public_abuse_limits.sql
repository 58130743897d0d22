-- +goose Up
-- modify "organizations" table
ALTER TABLE "organizations" ADD COLUMN "subscriber_mails_allowed" boolean NOT NULL DEFAULT false;
-- modify "submissions" table
ALTER TABLE "submissions" ADD COLUMN "network_hash" bytea NULL;
-- Other spellings of a mailbox that visitors have used, as hashes alone: a.b@gmail.com and ab@gmail.com
-- are one mailbox. The hash of the mailbox is the hash of its plain spelling, which has no row.
CREATE TABLE "address_spellings" ("organization_id" uuid NOT NULL, "email_hash" bytea NOT NULL, "mailbox_hash" bytea NOT NULL, PRIMARY KEY ("organization_id", "email_hash"), CONSTRAINT "address_spellings_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
CREATE INDEX "address_spelling_mailbox" ON "address_spellings" ("organization_id", "mailbox_hash");
-- From when on an address that only a program has told us may be mailed. A logged table: the rate of
-- such first e-mails must also hold after a crash of Postgres.
CREATE TABLE "first_mails" ("organization_id" uuid NOT NULL, "email_hash" bytea NOT NULL, "slot_at" timestamptz NOT NULL, PRIMARY KEY ("organization_id", "email_hash"), CONSTRAINT "first_mails_organizations_organization" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
CREATE INDEX "first_mail_slot" ON "first_mails" ("organization_id", "slot_at");
-- What the retention looks for.
CREATE INDEX "first_mail_age" ON "first_mails" ("slot_at");

-- +goose Down
DROP TABLE "first_mails";
DROP TABLE "address_spellings";
-- reverse: modify "submissions" table
ALTER TABLE "submissions" DROP COLUMN "network_hash";
-- reverse: modify "organizations" table
ALTER TABLE "organizations" DROP COLUMN "subscriber_mails_allowed";
