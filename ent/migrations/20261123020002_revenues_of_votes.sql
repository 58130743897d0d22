-- +goose NO TRANSACTION
-- +goose Up
-- Votes from before they had a copy of what their contact pays. The contact is held, so that what is
-- copied is what it pays, and the triggers count it.
-- +goose StatementBegin
DO $$
DECLARE lacking uuid[];
BEGIN
  LOOP
    lacking := ARRAY(SELECT v.id FROM votes v JOIN contacts c ON c.organization_id = v.organization_id AND c.id = v.contact_id
      WHERE v.contact_id IS NOT NULL AND v.mrr_cents IS NULL AND c.mrr_cents IS NOT NULL LIMIT 1000);
    EXIT WHEN lacking = '{}';
    WITH paying AS (
      SELECT v.id, c.mrr_cents, c.currency FROM votes v JOIN contacts c ON c.organization_id = v.organization_id AND c.id = v.contact_id
      WHERE v.id = ANY (lacking) ORDER BY c.id FOR SHARE OF c
    )
    UPDATE votes v SET mrr_cents = p.mrr_cents, currency = p.currency FROM paying p WHERE v.id = p.id AND v.contact_id IS NOT NULL;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
