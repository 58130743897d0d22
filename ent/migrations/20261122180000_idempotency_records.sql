-- +goose Up
-- By hand, because nothing reads or writes these rows but the statements of
-- internal/store/idempotency.go: they go in one round trip with the BEGIN and the COMMIT of a
-- change. "id" is a hash, so it is found by itself; "created_at" finds what is too old.
CREATE TABLE "idempotency_records" (
  "id" bytea NOT NULL,
  "organization_id" uuid NOT NULL,
  "created_at" timestamptz NOT NULL,
  "fingerprint" bytea NOT NULL,
  "status" integer NOT NULL,
  "answer" bytea NOT NULL,
  PRIMARY KEY ("id"),
  CONSTRAINT "idempotency_records_organizations" FOREIGN KEY ("organization_id") REFERENCES "organizations" ("id")
);
CREATE INDEX "idempotency_records_created_at" ON "idempotency_records" ("created_at");

-- +goose Down
DROP TABLE "idempotency_records";
