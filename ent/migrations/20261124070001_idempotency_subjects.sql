-- +goose Up
-- The persons and texts in a kept answer, by which an erasure finds it. Null for an answer without any,
-- and for those that the release before keeps.
ALTER TABLE "idempotency_records" ADD COLUMN "subjects" uuid[];

-- +goose Down
ALTER TABLE "idempotency_records" DROP COLUMN "subjects";
