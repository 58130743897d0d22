-- +goose NO TRANSACTION
-- +goose Up
-- Guests of earlier releases have their own id as the address.
-- +goose StatementBegin
DO $$
DECLARE
  last uuid := '00000000-0000-0000-0000-000000000000';
  batch uuid[];
BEGIN
  LOOP
    batch := ARRAY(SELECT id FROM users WHERE id > last ORDER BY id LIMIT 1000);
    EXIT WHEN batch = '{}';
    last := batch[cardinality(batch)];
    UPDATE users SET email = NULL WHERE id = ANY (batch) AND kind = 'guest' AND email IS NOT NULL;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
