-- +goose Up
-- By hand, because Ent can't declare an unlogged table. A crash of the server loses a minute of counting, and
-- no request waits for the disk or a standby. "bucket_id" is the id of an API key, or of a network or an address.
-- It has no reference to "api_keys", because a row would lock its key. A bucket is full again at "full_at". A
-- bucket without a row is full.
--
-- It replaces "rate_limits", which programs of the release before still use. Drop that table one release later.
CREATE UNLOGGED TABLE "token_buckets" (
  "bucket_id" uuid NOT NULL,
  "full_at" timestamptz NOT NULL,
  PRIMARY KEY ("bucket_id")
) WITH (fillfactor = 50); -- room for the next version of a row on its own page

-- +goose Down
DROP TABLE "token_buckets";
