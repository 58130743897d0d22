-- +goose Up
-- modify "changelog_entries" table
ALTER TABLE "changelog_entries" ADD COLUMN "changed_in" bigint NOT NULL DEFAULT 0;
-- modify "comments" table
ALTER TABLE "comments" ADD COLUMN "changed_in" bigint NOT NULL DEFAULT 0;
-- modify "contacts" table
ALTER TABLE "contacts" ADD COLUMN "changed_in" bigint NOT NULL DEFAULT 0;
-- modify "posts" table
ALTER TABLE "posts" ADD COLUMN "changed_in" bigint NOT NULL DEFAULT 0;
-- By hand, because no entity has this row. A change has the number of its transaction, counted on
-- from "base". Changes after a restore have numbers from "restored" on, which is behind all that
-- were given before. "removed" is the number of the latest tombstone that the retention took away.
CREATE TABLE "transaction_numbers" (
  "only" boolean NOT NULL DEFAULT true CHECK ("only"),
  "base" bigint NOT NULL DEFAULT 0,
  "restored" bigint NOT NULL DEFAULT 0,
  "cluster" bigint NOT NULL,
  "removed" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY ("only")
);
INSERT INTO "transaction_numbers" ("cluster") SELECT system_identifier FROM pg_control_system();
-- What is left of rows that are removed.
CREATE TABLE "tombstones" (
  "id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "kind" text NOT NULL,
  "board_id" uuid NULL,
  "deleted_at" timestamptz NOT NULL,
  "changed_in" bigint NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "tombstones_organizations" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id")
);
CREATE INDEX "tombstones_by_change" ON "tombstones" ("organization_id", "kind", "changed_in", "id");
CREATE INDEX "tombstones_by_deletion" ON "tombstones" ("deleted_at");
-- The number of a change that is made now. "base" stands in the function itself, because to look
-- it up for each row would double what the trigger takes. A WHEN would take as long as the trigger:
-- it is prepared anew for each statement.
CREATE FUNCTION "change_number"() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 0 + pg_current_xact_id()::text::bigint';
-- +goose StatementBegin
-- Triggers number changes and leave tombstones, so that programs from before this migration do, too.
CREATE FUNCTION "number_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changed_in := change_number();
  RETURN NEW;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "leave_tombstone"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  board uuid;
BEGIN
  IF TG_ARGV[0] <> 'contact' THEN
    board := OLD.board_id;
  END IF;
  INSERT INTO tombstones (id, organization_id, kind, board_id, deleted_at, changed_in)
  VALUES (OLD.id, OLD.organization_id, TG_ARGV[0], board, clock_timestamp(), change_number())
  -- A row that somebody brought back by hand can be removed again.
  ON CONFLICT (id) DO UPDATE SET deleted_at = EXCLUDED.deleted_at, changed_in = EXCLUDED.changed_in;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
-- For a database that was restored: the numbers that were given since the backup are given to other
-- changes there. A thousand million numbers a second from 1970 on are more than any Postgres gives,
-- so these are behind all from before, whatever backup it was.
CREATE FUNCTION "number_changes_anew"("if_in_another_cluster" boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  here bigint := (SELECT system_identifier FROM pg_control_system());
  begin_at bigint;
BEGIN
  IF if_in_another_cluster AND EXISTS (SELECT FROM transaction_numbers WHERE cluster = here) THEN
    RETURN;
  END IF;
  -- Until nobody is writing with numbers from before.
  LOCK TABLE posts, comments, contacts, changelog_entries IN SHARE MODE;
  UPDATE transaction_numbers SET cluster = here, restored = next, base = next - oldest FROM (
    SELECT extract(epoch FROM clock_timestamp())::bigint * 1000000000 AS next,
      pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest
  ) n WHERE NOT if_in_another_cluster OR cluster <> here RETURNING base INTO begin_at;
  IF FOUND THEN
    EXECUTE format('CREATE OR REPLACE FUNCTION change_number() RETURNS bigint LANGUAGE sql STABLE AS %L',
      format('SELECT %s + pg_current_xact_id()::text::bigint', begin_at));
  END IF;
END $$;
-- +goose StatementEnd
CREATE TRIGGER "number_change" BEFORE INSERT OR UPDATE ON "posts" FOR EACH ROW EXECUTE FUNCTION "number_change"();
CREATE TRIGGER "number_change" BEFORE INSERT OR UPDATE ON "comments" FOR EACH ROW EXECUTE FUNCTION "number_change"();
CREATE TRIGGER "number_change" BEFORE INSERT OR UPDATE ON "changelog_entries" FOR EACH ROW EXECUTE FUNCTION "number_change"();
-- That a contact was seen changes nothing else of it, and is what is written most.
CREATE TRIGGER "number_change" BEFORE INSERT OR UPDATE OF "external_user_id", "email", "email_hash", "name", "plan", "mrr_cents",
  "currency", "metadata", "updated_at" ON "contacts" FOR EACH ROW EXECUTE FUNCTION "number_change"();
CREATE TRIGGER "leave_tombstone" AFTER DELETE ON "posts" FOR EACH ROW EXECUTE FUNCTION "leave_tombstone"('post');
CREATE TRIGGER "leave_tombstone" AFTER DELETE ON "contacts" FOR EACH ROW EXECUTE FUNCTION "leave_tombstone"('contact');
CREATE TRIGGER "leave_tombstone" AFTER DELETE ON "changelog_entries" FOR EACH ROW EXECUTE FUNCTION "leave_tombstone"('changelog_entry');

-- +goose Down
DROP TRIGGER "leave_tombstone" ON "changelog_entries";
DROP TRIGGER "leave_tombstone" ON "contacts";
DROP TRIGGER "leave_tombstone" ON "posts";
DROP TRIGGER "number_change" ON "changelog_entries";
DROP TRIGGER "number_change" ON "contacts";
DROP TRIGGER "number_change" ON "comments";
DROP TRIGGER "number_change" ON "posts";
DROP FUNCTION "number_changes_anew"(boolean);
DROP FUNCTION "leave_tombstone"();
DROP FUNCTION "number_change"();
DROP FUNCTION "change_number"();
DROP TABLE "tombstones";
DROP TABLE "transaction_numbers";
-- reverse: modify "posts" table
ALTER TABLE "posts" DROP COLUMN "changed_in";
-- reverse: modify "contacts" table
ALTER TABLE "contacts" DROP COLUMN "changed_in";
-- reverse: modify "comments" table
ALTER TABLE "comments" DROP COLUMN "changed_in";
-- reverse: modify "changelog_entries" table
ALTER TABLE "changelog_entries" DROP COLUMN "changed_in";
