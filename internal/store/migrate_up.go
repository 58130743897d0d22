package store

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
)

const (
	// Whoever wants a table queues behind a migration that waits for it, and gives up
	// after lockTimeout. A migration of a file with a transaction waits for half as long
	// for a lock, and no statement takes longer with that than they wait.
	migrationLockTimeout      = lockTimeout / 2
	migrationStatementTimeout = 8 * time.Second
	// Between two tries of a migration that was cut off, those that queued get their
	// turn: a second at first, then twice as long each time.
	firstPause, longestPause = time.Second, 30 * time.Second
	// tryingFor is longer than a dump of a middling database holds its locks.
	tryingFor = 15 * time.Minute
)

// Migrate brings the schema up to date and returns the names of what it applied.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	return s.MigrateFrom(ctx, migrations.FS, func(string) {})
}

// MigrateFrom applies what the database lacks of the files, and tells what it waits for
// and how far it is. What was cut off, by a lock that wasn't to be had or with its
// process, is done again from the start of its file.
func (s *Store) MigrateFrom(ctx context.Context, files fs.FS, report func(string)) (applied []string, err error) {
	all, err := s.migrationsOf(ctx, files)
	if err != nil {
		return nil, err
	}
	m := &migrating{store: s, report: report}
	// Several processes that migrate wait for each other, and apply each migration once.
	p, err := goose.NewProvider(goose.DialectPostgres, s.sql, files, goose.WithSessionLocker(m))
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

// migrating is the application of one migration. It is goose's lock, too, because it has
// the connection then that the statements run on.
type migrating struct {
	store      *Store
	report     func(string)
	name, text string
	// end ends what watches the connection.
	end func()
}

func (m *migrating) say(format string, args ...any) {
	m.report(m.name + ": " + fmt.Sprintf(format, args...))
}

// inTransaction reports whether the file is one transaction.
func (m *migrating) inTransaction() bool {
	return !strings.Contains(m.text, "-- +goose NO TRANSACTION")
}

// until applies a migration, and again while somebody is in its way.
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

// cutOff says why Postgres ended a migration that may succeed later, "" for any other error.
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
	case deadlockDetected:
		return "gave way to somebody who waited for it and whom it waited for"
	}
	return ""
}
