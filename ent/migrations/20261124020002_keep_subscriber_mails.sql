-- +goose NO TRANSACTION
-- +goose Up
-- What the retention looks for.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "submission_with_network" ON "submissions" ("id") WHERE (network_hash IS NOT NULL);
-- Organizations that send e-mails to end-users go on: from this release on the operator allows it.
-- +goose StatementBegin
DO $$
DECLARE changed bigint;
BEGIN
  LOOP
    UPDATE organizations SET subscriber_mails_allowed = true WHERE id IN (
      SELECT id FROM organizations WHERE subscriber_mails AND NOT subscriber_mails_allowed LIMIT 1000);
    GET DIAGNOSTICS changed = ROW_COUNT;
    EXIT WHEN changed = 0;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "submission_with_network";
