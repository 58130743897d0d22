package retention

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
)

// A page has 500 rows, as everywhere in the retention.
const oldTombstonesSQL = `
WITH gone AS (
  DELETE FROM tombstones WHERE id IN (
    SELECT id FROM tombstones WHERE deleted_at < $1 ORDER BY deleted_at LIMIT 500 FOR UPDATE SKIP LOCKED
  ) RETURNING changed_in
), noted AS (
  UPDATE transaction_numbers SET removed = greatest(removed, (SELECT max(changed_in) FROM gone)) WHERE EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone`

// RemoveTombstones removes one page of tombstones, of all organizations, that are older than a
// moment, and returns their number. Whole reports that there may be more.
func RemoveTombstones(ctx context.Context, s *postgres.DB, olderThan time.Time) (removed int, whole bool, err error) {
	err = postgres.Again(func() error {
		return s.Across(ofAll).QueryRow(ctx, oldTombstonesSQL, olderThan).Scan(&removed)
	})
	if err != nil {
		return 0, false, errors.Wrap(err, "remove tombstones")
	}
	return removed, removed == 500, nil
}
