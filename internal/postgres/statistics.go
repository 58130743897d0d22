package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Postgres has no statistics of a new table until autovacuum first looks at it, which takes up to a minute. Until
// then it plans for an empty table and keeps that plan, so each delivery of a burst reads all rows. This file makes
// the statistics of a table as soon as the table has grown, and leaves the rest to autovacuum. A table that grows to
// a million rows gets about ten such ANALYZE.

const (
	// statisticsEvery is how often a process looks. A thousand deliveries a second are 5,000 rows in this time,
	// which is few enough to read all of them for a while. A look takes about a millisecond.
	statisticsEvery = 5 * time.Second
	// statisticsLock is the advisory lock that lets one process look at a time. Its key has two numbers, so it
	// cannot collide with locks of one number, such as those of idempotency keys.
	statisticsLock = "4280, 1"
)

// Below 1,000 rows every plan is fast. At worst, a table has statistics of half of its rows. Updates do not count,
// because a small table that changes a thousand times a second would need new statistics at each look. A restored
// table has its number of rows from its indexes, and no statistics. Only the owner of a table may ANALYZE it.
const grownTableSQL = `
SELECT c.relname, s.n_live_tup FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE c.relkind = 'r' AND c.relnamespace = current_schema::regnamespace AND c.relname <> ALL ($1::text[])
  AND s.n_live_tup >= 1000
  AND (s.n_live_tup >= 2 * c.reltuples OR (s.last_analyze IS NULL AND s.last_autoanalyze IS NULL))
  AND pg_has_role(c.relowner, 'USAGE')
ORDER BY s.n_live_tup / greatest(c.reltuples, 1) DESC LIMIT 1`

// MakeStatistics runs ANALYZE on the tables that have at least doubled since their last statistics, and returns their
// names. If it fails for a table, it goes on with the others, and the error names the table. It does nothing while
// another process is doing the same.
func (d *DB) MakeStatistics(ctx context.Context) (made []string, err error) {
	tried := []string{}
	var failed []error
	for {
		var table string
		err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) (err error) {
			table, err = makeStatistics(ctx, tx, tried)
			return err
		})
		if err != nil {
			failed = append(failed, errors.Wrapf(err, "make statistics of the table %q, which has grown", table))
		}
		if table == "" {
			return made, errors.Join(failed...)
		}
		tried = append(tried, table)
		if err == nil {
			made = append(made, table)
		}
	}
}

// makeStatistics runs ANALYZE on one table in its own transaction, so that no other table stays locked. It returns the
// name of the table, or "" if none has grown.
func makeStatistics(ctx context.Context, tx pgx.Tx, tried []string) (table string, err error) {
	var mine bool
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock("+statisticsLock+") AND NOT pg_is_in_recovery()").Scan(&mine); err != nil || !mine {
		return "", err
	}
	var rows int64
	switch err := tx.QueryRow(ctx, grownTableSQL, tried).Scan(&table, &rows); {
	case errors.Is(err, pgx.ErrNoRows):
		return "", nil
	case err != nil:
		return "", err
	}
	// A later look handles a table that is locked now, for example by a migration.
	_, err = tx.Exec(ctx, "ANALYZE (SKIP_LOCKED) "+pgx.Identifier{table}.Sanitize())
	return table, err
}

// KeepStatistics calls MakeStatistics at intervals until the context ends.
func (d *DB) KeepStatistics(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(statisticsEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		made, err := d.MakeStatistics(ctx)
		if len(made) > 0 {
			log.Debug("made statistics of tables that have grown", "tables", made)
		}
		// One line is enough while the database is away.
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("can't make statistics of tables that have grown; queries may be slow until Postgres's autovacuum does", "error", err)
		}
		failing = err != nil
	}
}
