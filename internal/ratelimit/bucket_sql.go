package ratelimit

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/internal/postgres"
)

// Bucket is a token bucket of a visitor on public boards: of a client's network or of an address.
// Its row is in the table of the API keys' buckets (leases_sql.go) and works the same way.
type Bucket struct {
	ID uuid.UUID
	// Size is the number of tokens it holds. Refill is the time until an empty bucket is full.
	Size   int
	Refill time.Duration
}

const takeFromBucketSQL = `
INSERT INTO token_buckets AS r (bucket_id, full_at) VALUES ($1, clock_timestamp() + make_interval(secs => $2))
ON CONFLICT (bucket_id) DO UPDATE SET full_at = greatest(r.full_at, clock_timestamp()) + make_interval(secs => $2)
WHERE greatest(r.full_at, clock_timestamp()) + make_interval(secs => $2) <= clock_timestamp() + make_interval(secs => $3)`

// TakeFrom takes one token from a bucket and reports whether there was one.
func TakeFrom(ctx context.Context, s *postgres.DB, b Bucket) (bool, error) {
	each := b.Refill.Seconds() / float64(b.Size)
	// One microsecond per token covers the rounding of timestamps. Otherwise the last token might
	// be missing.
	done, err := s.Across("buckets of networks and addresses belong to the service").Exec(ctx, takeFromBucketSQL, b.ID.String(), each, b.Refill.Seconds()+1e-6*float64(b.Size))
	if err != nil {
		return false, errors.Wrap(err, "take a token of a bucket")
	}
	return done.RowsAffected() == 1, nil
}
