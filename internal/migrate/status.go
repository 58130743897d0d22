package migrate

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"earshot/ent/migrations"
	"earshot/internal/postgres"
)

// ErrSchemaBehind is returned by CheckSchema when migrations are missing.
var ErrSchemaBehind = errors.New("the database schema is behind: run `earshot migrate`")

// CheckSchema returns ErrSchemaBehind when the database lacks a migration of this program. A newer
// schema is fine, because it occurs during a rolling update.
func CheckSchema(ctx context.Context, s *postgres.DB) error {
	all, err := Status(ctx, s)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, Migration.Pending) {
		return ErrSchemaBehind
	}
	return nil
}

// Migration is a migration of this program or of the database.
type Migration struct {
	Version int64
	// Name is the name of its file. It is empty for a migration of a newer program.
	Name string
	// AppliedAt is nil for a pending migration.
	AppliedAt *time.Time
}

// Pending reports whether the database lacks the migration.
func (m Migration) Pending() bool { return m.AppliedAt == nil }

// Status returns all migrations, oldest first. It changes nothing in the database.
func Status(ctx context.Context, s *postgres.DB) ([]Migration, error) {
	return statusOf(ctx, s, migrations.FS)
}

func statusOf(ctx context.Context, s *postgres.DB, files fs.FS) ([]Migration, error) {
	applied, err := appliedMigrations(ctx, s)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, errors.Wrap(err, "list the migrations")
	}
	var all []Migration
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, errors.Wrapf(err, "read the version of %s", name)
		}
		m := Migration{Version: version, Name: name}
		if at, ok := applied[version]; ok {
			m.AppliedAt = &at
			delete(applied, version)
		}
		all = append(all, m)
	}
	for version, at := range applied {
		all = append(all, Migration{Version: version, AppliedAt: &at})
	}
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return all, nil
}

// appliedMigrations returns the times at which migrations were applied. Goose's own function would
// create its table if it is missing.
func appliedMigrations(ctx context.Context, s *postgres.DB) (map[int64]time.Time, error) {
	var known bool
	if err := s.Across("migrations").QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&known); err != nil {
		return nil, errors.Wrap(err, "look for the schema version")
	}
	applied := map[int64]time.Time{}
	if !known {
		return applied, nil
	}
	// Goose's first row is version 0, the empty database. Goose deletes the row of a migration that
	// is rolled back.
	rows, err := s.Across("migrations").Query(ctx, "SELECT version_id, tstamp::timestamptz FROM goose_db_version WHERE is_applied AND version_id > 0 ORDER BY id")
	if err != nil {
		return nil, errors.Wrap(err, "read the schema version")
	}
	var (
		version int64
		at      time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
		applied[version] = at.UTC()
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the schema version")
	}
	return applied, nil
}

// TableSize is the size of a table, including TOAST and without indexes.
type TableSize struct {
	Bytes int64
	// Rows is the estimate of Postgres, 0 for a table that was never analyzed.
	Rows int64
}

// TableSizes returns the sizes of the database's tables by name, over all organizations.
func TableSizes(ctx context.Context, s *postgres.DB) (map[string]TableSize, error) {
	rows, err := s.Across("migrations").Query(ctx, `
		SELECT relname, pg_table_size(oid), greatest(reltuples, 0)::bigint
		FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema::regnamespace`)
	if err != nil {
		return nil, errors.Wrap(err, "read the sizes of tables")
	}
	sizes := map[string]TableSize{}
	var (
		name string
		size TableSize
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &size.Bytes, &size.Rows}, func() error {
		sizes[name] = size
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the sizes of tables")
	}
	return sizes, nil
}
