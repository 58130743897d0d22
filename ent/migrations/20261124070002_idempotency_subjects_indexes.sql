-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS "idempotency_records_subjects" ON "idempotency_records" USING gin ("subjects") WHERE (subjects IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "idempotency_records_subjects";
