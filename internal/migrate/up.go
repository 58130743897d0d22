// Package migrate applies the files of ent/migrations and checks that a database has them. A process
// that applies migrations waits for others that do the same, and reports its waits.
package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"earshot/ent/migrations"
	"earshot/internal/postgres"
)

const (
	// Clients that need a table queue behind a migration that waits for its lock, and they give up
	// after lockTimeout. A migration in a transaction therefore waits at most half as long for a
	// lock. Each of its statements, including the wait, takes less time than lockTimeout.
	migrationLockTimeout      = postgres.LockTimeout / 2
	migrationStatementTimeout = 8 * time.Second
	// Between two tries of an interrupted migration, the queued clients get their turn. The pause
	// is one second at first and doubles each time.
	firstPause, longestPause = time.Second, 30 * time.Second
	// tryingFor is longer than a dump of a medium-sized database holds its locks.
	tryingFor = 15 * time.Minute
)

// Up brings the schema up to date and returns the names of the applied migrations.
func Up(ctx context.Context, s *postgres.DB) ([]string, error) {
	return UpFrom(ctx, s, migrations.FS, func(string) {})
}

// UpFrom applies the files that the database lacks. It reports its progress and the locks that
// it waits for. If Postgres or the end of the process interrupts a file, the file is repeated from
// its start.
func UpFrom(ctx context.Context, s *postgres.DB, files fs.FS, report func(string)) (applied []string, err error) {
	all, err := statusOf(ctx, s, files)
	if err != nil {
		return nil, err
	}
	m := &migrating{store: s, report: report}
	// Processes that migrate wait for each other, so each migration is applied once.
	p, err := goose.NewProvider(goose.DialectPostgres, s.StdPool(), files, goose.WithSessionLocker(m))
	if err != nil {
		return nil, errors.Wrap(err, "load the migrations")
	}
	for _, pending := range all {
		if !pending.Pending() {
			continue
		}
		text, err := fs.ReadFile(files, pending.Name)
		if err != nil {
			return applied, errors.Wrap(err, "read a migration")
		}
		m.name, m.text = pending.Name, string(text)
		results, err := m.until(ctx, p, pending.Version)
		for _, r := range results {
			applied = append(applied, r.Source.Path)
		}
		if err != nil {
			return applied, errors.Wrap(err, "apply migrations")
		}
	}
	return applied, nil
}

// migrating is the application of one migration. It also implements goose's session locker, which
// has access to the connection that the statements run on.
type migrating struct {
	store      *postgres.DB
	report     func(string)
	name, text string
	// end stops the goroutine that watches the connection.
	end func()
}

func (m *migrating) say(format string, args ...any) {
	m.report(m.name + ": " + fmt.Sprintf(format, args...))
}

// inTransaction reports whether the file runs in one transaction.
func (m *migrating) inTransaction() bool {
	return !strings.Contains(m.text, "-- +goose NO TRANSACTION")
}

// until applies a migration and repeats it while other sessions block it.
func (m *migrating) until(ctx context.Context, p *goose.Provider, version int64) ([]*goose.MigrationResult, error) {
	began, pause := time.Now(), firstPause
	for {
		results, err := p.UpTo(ctx, version)
		if err == nil || ctx.Err() != nil {
			return results, err
		}
		why := cutOff(err)
		switch {
		case why == "":
			return results, err
		case time.Since(began) > tryingFor:
			return results, errors.Wrapf(err, "%s was cut off for %s; nothing of a transaction is left, and repeating it is harmless",
				m.name, tryingFor)
		}
		m.say("%s, so that others don't wait for it any longer; tried again in %s", why, pause)
		select {
		case <-ctx.Done():
			return results, errors.Wrap(ctx.Err(), "wait for the next try")
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// cutOff returns the reason why Postgres ended a migration that may succeed later, or "" for any
// other error.
func cutOff(err error) string {
	var failed *pgconn.PgError
	if !errors.As(err, &failed) {
		return ""
	}
	switch failed.Code {
	case "55P03":
		return "gave up waiting for a lock"
	case "57014":
		return "gave up on a statement that took too long"
	case postgres.DeadlockDetected:
		return "gave way to somebody who waited for it and whom it waited for"
	}
	return ""
}
