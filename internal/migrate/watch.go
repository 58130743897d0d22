package migrate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch reports, from another connection, the progress of a migration and the locks that it waits
// for. It runs until the returned function is called. It reports nothing when its queries fail.
func (m *migrating) watch(ctx context.Context, pid int) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		var (
			began = time.Now()
			told  time.Time
			last  string
		)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollInterval):
			}
			kind, text := m.doing(ctx, pid)
			if kind == "" || kind == last && time.Since(told) < repeatInterval {
				continue
			}
			last, told = kind, time.Now()
			m.say("%s (%s so far)", text, time.Since(began).Round(time.Second))
		}
	})
	return func() { cancel(); done.Wait() }
}

// doing describes the current step of the migration. The kind stays the same while only the
// percentage changes.
func (m *migrating) doing(ctx context.Context, pid int) (kind, text string) {
	if lock, holders := m.waitsFor(ctx, pid); lock != "" {
		return lock + holders, "waits for " + lock + ", " + holders
	}
	var index, table, phase string
	var percent *float64
	err := m.store.Across("migrations").QueryRow(ctx, `
		SELECT coalesce(nullif(index_relid, 0)::regclass::text, 'an index'), relid::regclass::text, phase, round(100.0 * CASE
			WHEN blocks_total > 0 THEN blocks_done::numeric / blocks_total
			WHEN tuples_total > 0 THEN tuples_done::numeric / tuples_total END, 1)::float8
		FROM pg_stat_progress_create_index WHERE pid = $1`, pid).Scan(&index, &table, &phase, &percent)
	if err == nil {
		text = fmt.Sprintf("builds %s on %s: %s", index, table, phase)
		if percent != nil {
			text += fmt.Sprintf(", %.1f %%", *percent)
		}
		return index + phase, text
	}
	var statement string
	err = m.store.Across("migrations").QueryRow(ctx, `
		SELECT left(regexp_replace(query, '\s+', ' ', 'g'), 80) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'`, pid).Scan(&statement)
	if err != nil {
		return "", ""
	}
	return statement, "runs " + statement
}

// waitsFor describes the lock that a connection waits for, and the sessions that hold it.
func (m *migrating) waitsFor(ctx context.Context, pid int) (lock, holders string) {
	var relation, mode, kind *string
	err := m.store.Across("migrations").QueryRow(ctx, `
		SELECT relation::regclass::text, mode, locktype FROM pg_locks WHERE pid = $1 AND NOT granted LIMIT 1`, pid).
		Scan(&relation, &mode, &kind)
	if err != nil {
		return "", ""
	}
	switch {
	case relation != nil:
		lock = fmt.Sprintf("%s (%s)", *relation, *mode)
	case *kind == "virtualxid":
		lock = "transactions that began before it"
	default:
		lock = "a row that somebody changes"
	}
	rows, err := m.store.Across("migrations").Query(ctx, `SELECT `+sessionInWords+` FROM pg_stat_activity a WHERE pid = ANY(pg_blocking_pids($1)) ORDER BY xact_start LIMIT 5`, pid)
	if err != nil {
		return lock, "held by nobody who can be seen"
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) == 0 {
		return lock, "held by nobody who can be seen"
	}
	return lock, "held by " + strings.Join(all, "; ")
}
