package postgres

import (
	"context"
	stdsql "database/sql"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
)

// Inserted reads the outcome of an insert that does nothing on a conflict. After a conflict Ent
// returns sql.ErrNoRows, and the transaction can go on.
func Inserted(err error) (bool, error) {
	if errors.Is(err, stdsql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrap(err, "insert")
	}
	return true, nil
}

// AtPrecision returns a time in UTC at the precision that Postgres keeps.
func AtPrecision(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	kept := at.UTC().Truncate(time.Microsecond)
	return &kept
}

// Now is the wall clock at the precision that Postgres keeps.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// These locks are enough for rows that are not deleted and keep their id. They do not conflict with
// the key share lock that Postgres takes on a row for each insert that refers to it. With a plain
// FOR UPDATE on the organization, each of its new events would wait, and some would deadlock.
var (
	// KeyShare keeps a row from being deleted.
	KeyShare = sql.WithLockClause("FOR KEY SHARE")
	// KeyShareSkipHeld is KeyShare without the rows that another transaction is about to delete.
	KeyShareSkipHeld = sql.WithLockClause("FOR KEY SHARE SKIP LOCKED")
	// NoKeyUpdate lets only one transaction at a time lock the row.
	NoKeyUpdate = sql.WithLockClause("FOR NO KEY UPDATE")
)

// Exists reports whether a query that matches at most one row finds it. Ent's own Exist scans the id
// into a slice, which fails for a typed id.
func Exists(ctx context.Context, query interface {
	Count(ctx context.Context) (int, error)
},
) (bool, error) {
	n, err := query.Count(ctx)
	return n > 0, err
}

// SkipLocked is the end of a locking clause.
func SkipLocked(skipHeld bool) string {
	if skipHeld {
		return " SKIP LOCKED"
	}
	return ""
}
