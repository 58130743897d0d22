package store

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"

	"earshot/ent/migrations"
)

const (
	// migrationLock is the advisory lock of goose's own locker, which programs before
	// this one take.
	migrationLock = lock.DefaultLockID
	// lookEvery is how often it is looked whether the lock is free, and what a migration does.
	lookEvery = time.Second
	// sayAgain is how often the same is told once more.
	sayAgain = 15 * time.Second
	// goneAfter is how long Postgres goes on with a statement whose process has died.
	goneAfter = 2 * time.Second
)

// SessionLock waits for its turn and prepares the connection that the migration runs on.
func (m *migrating) SessionLock(ctx context.Context, c *stdsql.Conn) error {
	host, _ := os.Hostname() // an empty one says nothing
	who := fmt.Sprintf("earshot migrate (%s, process %d)", host, os.Getpid())
	if _, err := c.ExecContext(ctx, "SELECT set_config('application_name', $1, false)", who); err != nil {
		return errors.Wrap(err, "name the connection")
	}
	if err := m.turn(ctx, c); err != nil {
		return err
	}
	var pid int
	if err := c.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return errors.Wrap(err, "ask for the connection's process")
	}
	m.end = m.watch(ctx, pid)
	err := m.limit(ctx, c)
	if err == nil {
		err = m.dropUnfinished(ctx, c)
	}
	if err != nil {
		_ = m.SessionUnlock(context.WithoutCancel(ctx), c) // goose does it after a success only
	}
	return err
}

// SessionUnlock gives the connection back as it was.
func (m *migrating) SessionUnlock(ctx context.Context, c *stdsql.Conn) error {
	m.end()
	// A connection that was cut off has given its lock back.
	if c.PingContext(ctx) != nil {
		return nil
	}
	for _, statement := range []string{fmt.Sprintf("SELECT pg_advisory_unlock(%d)", migrationLock), "RESET ALL"} {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return errors.Wrap(err, "give the migration's lock back")
		}
	}
	return nil
}

// turn waits until nobody else migrates, however long that takes.
func (m *migrating) turn(ctx context.Context, c *stdsql.Conn) error {
	var told time.Time
	for {
		var mine bool
		if err := c.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", migrationLock).Scan(&mine); err != nil {
			return errors.Wrap(err, "take the migration's lock")
		}
		if mine {
			return nil
		}
		if time.Since(told) > sayAgain {
			told = time.Now()
			m.say("waits for another migration: %s", m.otherMigration(ctx, c))
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for another migration")
		case <-time.After(lookEvery):
		}
	}
}

// otherMigration says who has the lock.
func (m *migrating) otherMigration(ctx context.Context, c *stdsql.Conn) string {
	var text string
	err := c.QueryRowContext(ctx, `
		SELECT `+sessionInWords+` || ', which does: ' || left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid::bigint << 32 | l.objid::bigint) = $1`, migrationLock).Scan(&text)
	switch {
	case errors.Is(err, stdsql.ErrNoRows):
		return "it has just ended"
	case err != nil:
		return "it can't be seen: " + err.Error()
	}
	return text
}

// sessionInWords says of a row a of pg_stat_activity who it is. It leaves out what the
// session does: somebody's statement may hold somebody's data.
const sessionInWords = `format('process %s of %s%s%s', a.pid, coalesce(nullif(a.application_name, ''), a.usename),
	coalesce(' from ' || host(a.client_addr), ''), coalesce(to_char(a.xact_start AT TIME ZONE 'UTC', '", in a transaction since "HH24:MI:SS" UTC"'), ''))`

// limit sets how long the migration waits and works, and has Postgres end it when this
// process dies.
func (m *migrating) limit(ctx context.Context, c *stdsql.Conn) error {
	limits := map[string]time.Duration{"lock_timeout": 0, "statement_timeout": 0}
	given := map[string]bool{}
	if m.inTransaction() {
		limits["lock_timeout"] = migrationLockTimeout
		if !migrations.BeforeRules(m.name) {
			limits["statement_timeout"] = migrationStatementTimeout
		}
		// What the database's URL says counts more.
		rows, err := c.QueryContext(ctx, "SELECT name FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout') AND source = 'client'")
		if err != nil {
			return errors.Wrap(err, "read the connection's limits")
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return errors.Wrap(err, "read the connection's limits")
			}
			given[name] = true
		}
		if err := rows.Err(); err != nil {
			return errors.Wrap(err, "read the connection's limits")
		}
	}
	limits["client_connection_check_interval"] = goneAfter
	for name, limit := range limits {
		if given[name] {
			continue
		}
		if _, err := c.ExecContext(ctx, "SELECT set_config($1, $2, false)", name, strconv.FormatInt(limit.Milliseconds(), 10)); err != nil {
			return errors.Wrapf(err, "set %s", name)
		}
	}
	return nil
}

// dropUnfinished removes the indexes that the file builds or drops beside writes and that
// are unfinished, because somebody was cut off: the file builds them anew.
func (m *migrating) dropUnfinished(ctx context.Context, c *stdsql.Conn) error {
	if m.inTransaction() {
		return nil
	}
	for {
		var name string
		err := c.QueryRowContext(ctx, `
			SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
			WHERE NOT indisvalid AND relnamespace = current_schema::regnamespace
				AND (strpos($1, '"' || relname || '"') > 0 OR $1 ~ ('\m' || relname || '\M'))
			LIMIT 1`, m.text).Scan(&name)
		if errors.Is(err, stdsql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "look for unfinished indexes")
		}
		m.say("index %s was left unfinished by somebody who was cut off; it is dropped and built anew", name)
		if _, err := c.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+pgx.Identifier{name}.Sanitize()); err != nil {
			return errors.Wrapf(err, "drop the unfinished index %s", name)
		}
	}
}
