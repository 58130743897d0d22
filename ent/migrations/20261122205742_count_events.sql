-- +goose Up
-- modify "events" table
ALTER TABLE "events" ADD COLUMN "sequence" bigint NULL;
-- By hand, because no entity has these rows: the statements that insert and remove events keep
-- them. "last" is the number of the organization's latest event, "removed" that of the latest one
-- that the retention took away. Whoever counts an event holds the row until he commits, so the
-- numbers are in the order of the commits, and none is missing. Each change of a row makes a new
-- version of it: the room that a page keeps free is for these.
CREATE TABLE "event_sequences" (
  "organization_id" uuid NOT NULL,
  "last" bigint NOT NULL,
  "removed" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY ("organization_id"),
  CONSTRAINT "event_sequences_organizations" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id")
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.05);
-- +goose StatementBegin
-- For events that are inserted one by one, and by a program from before this migration.
CREATE FUNCTION "count_event"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_sequences AS s (organization_id, last) VALUES (NEW.organization_id, 1)
  ON CONFLICT (organization_id) DO UPDATE SET last = s.last + 1
  RETURNING last INTO NEW.sequence;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER "count_event" BEFORE INSERT ON "events" FOR EACH ROW
  WHEN (NEW.sequence IS NULL AND NEW.type <> 'webhook.test') EXECUTE FUNCTION "count_event"();

-- +goose Down
-- reverse: modify "events" table
DROP TRIGGER "count_event" ON "events";
DROP FUNCTION "count_event"();
DROP TABLE "event_sequences";
ALTER TABLE "events" DROP COLUMN "sequence";
