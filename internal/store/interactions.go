package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// OverdueInteraction is one that somebody should have looked after.
type OverdueInteraction struct {
	ID           publicid.Interaction
	Organization publicid.Organization
	DueAt        time.Time
}

const overdueInteractionsSQL = `
SELECT id, organization_id, due_at FROM interactions
WHERE due_at <= now() - make_interval(secs => $1) AND (due_at, id) > ($2, $3::uuid)
ORDER BY due_at, id LIMIT $4`

// OverdueInteractions are those, of all organizations, whose link should have been mailed the
// grace ago, or whose time was up then, behind the last one, the longest overdue first. It is for the
// sweep.
func (s *Store) OverdueInteractions(
	ctx context.Context, grace time.Duration, last OverdueInteraction, limit int,
) ([]OverdueInteraction, error) {
	rows, err := s.pool.Query(ctx, overdueInteractionsSQL, grace.Seconds(), last.DueAt, last.ID.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "find overdue interactions")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i OverdueInteraction, err error) {
		return i, row.Scan(&i.ID, &i.Organization, &i.DueAt)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read overdue interactions")
	}
	return found, nil
}

// Bucket is a token bucket of whoever acts on public boards: of a client's network, or of an
// address. It is a row beside those of API keys (ratelimits.go), with the same meaning.
type Bucket struct {
	ID uuid.UUID
	// Size is how many tokens it holds, and Refill how long it takes until an empty one is full.
	Size   int
	Refill time.Duration
}

const takeFromBucketSQL = `
INSERT INTO rate_limits AS r (api_key_id, full_at) VALUES ($1, clock_timestamp() + make_interval(secs => $2))
ON CONFLICT (api_key_id) DO UPDATE SET full_at = greatest(r.full_at, clock_timestamp()) + make_interval(secs => $2)
WHERE greatest(r.full_at, clock_timestamp()) + make_interval(secs => $2) <= clock_timestamp() + make_interval(secs => $3)`

// TakeFrom takes one token out of a bucket, and reports whether there was one.
func (s *Store) TakeFrom(ctx context.Context, b Bucket) (bool, error) {
	each := b.Refill.Seconds() / float64(b.Size)
	// A microsecond more, the precision of the moments: so that the last token is there.
	done, err := s.pool.Exec(ctx, takeFromBucketSQL, b.ID.String(), each, b.Refill.Seconds()+1e-6*float64(b.Size))
	if err != nil {
		return false, errors.Wrap(err, "take a token of a bucket")
	}
	return done.RowsAffected() == 1, nil
}
