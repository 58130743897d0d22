-- +goose Up
-- By hand, because Ent can't declare an unlogged table: what is lost in a crash of the
-- server is a minute of counting, and nobody waits for a disk or a standby. There is no
-- reference to "api_keys": a row would lock its key's, which rotations and revocations want.
-- A bucket is full again at "full_at"; no row is a full one.
CREATE UNLOGGED TABLE "rate_limits" (
  "api_key_id" uuid NOT NULL,
  "full_at" timestamptz NOT NULL,
  PRIMARY KEY ("api_key_id")
) WITH (fillfactor = 50); -- room for the next version of a row on its own page

-- +goose Down
DROP TABLE "rate_limits";
