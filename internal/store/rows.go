package store

import (
	"context"
	stdsql "database/sql"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
)

// Inserted reads the outcome of an insert that does nothing on a conflict: Ent
// answers sql.ErrNoRows then, and the transaction goes on.
func Inserted(err error) (bool, error) {
	if errors.Is(err, stdsql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrap(err, "insert")
	}
	return true, nil
}

// AtPrecision is a moment as Postgres keeps it.
func AtPrecision(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	kept := at.UTC().Truncate(time.Microsecond)
	return &kept
}

// Now is the wall clock at the precision that Postgres keeps.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// The locks that suffice where rows aren't deleted or don't get another id. They
// leave alone the key share lock that Postgres itself takes on a row for each
// insert that refers to it: with plain FOR UPDATE on the organization, every
// event of it would wait, and some for each other.
var (
	// KeyShare keeps a row from being deleted.
	KeyShare = sql.WithLockClause("FOR KEY SHARE")
	// NoKeyUpdate lets one at a time.
	NoKeyUpdate = sql.WithLockClause("FOR NO KEY UPDATE")
)

// Exists reports whether a query that finds one row at most finds it. Ent's own
// Exist scans the id into a slice, which it can't do with a typed id.
func Exists(ctx context.Context, query interface {
	Count(ctx context.Context) (int, error)
},
) (bool, error) {
	n, err := query.Count(ctx)
	return n > 0, err
}
