-- +goose Up
-- modify "webhooks" table
ALTER TABLE "webhooks" ADD COLUMN "max_per_second" bigint NULL;
-- By hand, because Ent can't declare an unlogged table: what is lost in a crash of the server is a
-- second's tokens and the length of a line, and nobody waits for a disk or a standby. There is no
-- reference to "webhooks": a row would lock its webhook's. A bucket is full again at "full_at", and
-- no row is a full one; "line_until" is the last turn under the limit "max_per_second".
CREATE UNLOGGED TABLE "webhook_throttles" (
  "webhook_id" uuid NOT NULL,
  "max_per_second" bigint NULL,
  "full_at" timestamptz NOT NULL DEFAULT '-infinity',
  "line_until" timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY ("webhook_id")
) WITH (fillfactor = 50); -- room for the next version of a row on its own page

-- +goose Down
DROP TABLE "webhook_throttles";
-- reverse: modify "webhooks" table
ALTER TABLE "webhooks" DROP COLUMN "max_per_second";
