package retention

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/change"
	"earshot/internal/postgres"
)

// The number of rows is part of the text, for the reason given in retention.go.
const oldRecordsSQL = `
DELETE FROM idempotency_records WHERE id IN (
  SELECT id FROM idempotency_records WHERE created_at <= $1 ORDER BY created_at LIMIT 500 FOR UPDATE SKIP LOCKED)`

// RemoveIdempotencyRecords removes one page of expired records, of all organizations, and returns
// their number. Whole reports that there may be more.
func RemoveIdempotencyRecords(ctx context.Context, s *postgres.DB) (removed int, whole bool, err error) {
	done, err := s.Across(ofAll).Exec(ctx, oldRecordsSQL, postgres.Now().Add(-change.IdempotencyRetention))
	if err != nil {
		return 0, false, errors.Wrap(err, "remove idempotency records")
	}
	removed = int(done.RowsAffected())
	return removed, removed == 500, nil
}
