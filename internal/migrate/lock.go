package migrate

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
	// migrationLock is the advisory lock of goose's own locker, which earlier releases use.
	migrationLock = lock.DefaultLockID
	// pollInterval is the interval between checks of the lock, and of a migration's progress.
	pollInterval = time.Second
	// repeatInterval is the interval after which the same message is repeated.
	repeatInterval = 15 * time.Second
	// goneAfter is how soon Postgres ends a statement whose client process has died.
	goneAfter = 2 * time.Second
)

// SessionLock waits for the migration lock and prepares the connection that the migration runs on.
func (m *migrating) SessionLock(ctx context.Context, c *stdsql.Conn) error {
	host, _ := os.Hostname() // empty after an error
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
		_ = m.SessionUnlock(context.WithoutCancel(ctx), c) // goose calls it only after a success
	}
	return err
}

// SessionUnlock releases the lock and resets the connection.
func (m *migrating) SessionUnlock(ctx context.Context, c *stdsql.Conn) error {
	m.end()
	// A connection that broke has already released its lock.
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

// turn waits, without a limit, until no other process migrates.
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
		if time.Since(told) > repeatInterval {
			told = time.Now()
			m.say("waits for another migration: %s", m.otherMigration(ctx, c))
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for another migration")
		case <-time.After(pollInterval):
		}
	}
}

// otherMigration describes the session that holds the lock.
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

// sessionInWords describes a session: a row of pg_stat_activity with the alias a. It leaves out the
// session's statement, which may contain personal data.
const sessionInWords = `format('process %s of %s%s%s', a.pid, coalesce(nullif(a.application_name, ''), a.usename),
	coalesce(' from ' || host(a.client_addr), ''), coalesce(to_char(a.xact_start AT TIME ZONE 'UTC', '", in a transaction since "HH24:MI:SS" UTC"'), ''))`

// limit sets how long the migration may wait and run. It also makes Postgres end the migration when
// this process dies.
func (m *migrating) limit(ctx context.Context, c *stdsql.Conn) error {
	limits := map[string]time.Duration{"lock_timeout": 0, "statement_timeout": 0}
	given := map[string]bool{}
	if m.inTransaction() {
		limits["lock_timeout"] = migrationLockTimeout
		if !migrations.BeforeRules(m.name) {
			limits["statement_timeout"] = migrationStatementTimeout
		}
		// Limits in the database's URL have precedence.
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

// dropUnfinished removes the unfinished indexes that an interrupted run of this file left behind.
// The file then builds them anew.
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
