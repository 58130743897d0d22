package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// OverdueEntry is a changelog entry whose publication is overdue.
type OverdueEntry struct {
	ID           publicid.ChangelogEntry
	Organization publicid.Organization
}

const overdueEntriesSQL = `
SELECT id, organization_id FROM changelog_entries
WHERE state = 'scheduled' AND published_at <= now() - make_interval(secs => $1)
ORDER BY published_at LIMIT $2`

// OverdueEntries returns scheduled changelog entries of all organizations that are overdue by more
// than the grace, longest overdue first. The sweep uses it.
func (s *Store) OverdueEntries(ctx context.Context, grace time.Duration, limit int) ([]OverdueEntry, error) {
	rows, err := s.pool.Query(ctx, overdueEntriesSQL, grace.Seconds(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "find overdue changelog entries")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e OverdueEntry, err error) {
		return e, row.Scan(&e.ID, &e.Organization)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read overdue changelog entries")
	}
	return found, nil
}
