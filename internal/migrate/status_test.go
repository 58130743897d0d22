package migrate_test

import (
	"context"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	migraterow "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// names returns the files of the embedded migrations, oldest first.
func names(t *testing.T) []string {
	t.Helper()
	found, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func TestTheMigrationsAreThoseThatWereReleased(t *testing.T) {
	t.Parallel()
	files, err := sqltool.NewGooseDir(filepath.Join(testkit.Root(), "ent", "migrations"))
	require.NoError(t, err)
	require.NoError(t, migraterow.Validate(files), "run `make migration` after an edit by hand of one that isn't released")
}

func TestMigrationsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, testkit.EmptyDatabase(t))
	applied, err := migrate.Up(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, names(t), applied)
	require.NoError(t, migrate.CheckSchema(t.Context(), s))

	applied, err = migrate.Up(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, applied)
}

func TestProcessesThatMigrateTogetherApplyEachMigrationOnce(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		applied []string
		failed  []error
	)
	for range 2 {
		s := fixture.Open(t, url)
		all.Go(func() {
			done, err := migrate.Up(t.Context(), s)
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, done...)
			if err != nil {
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	require.Empty(t, failed)
	// The processes take turns. One may continue with migrations that the other began, and end
	// first.
	require.ElementsMatch(t, names(t), applied)
}

func TestTheErrorForAnEmptyDatabaseNamesTheMigrateCommand(t *testing.T) {
	t.Parallel()
	err := migrate.CheckSchema(t.Context(), fixture.Open(t, testkit.EmptyDatabase(t)))
	require.ErrorIs(t, err, migrate.ErrSchemaBehind)
	require.ErrorContains(t, err, "run `earshot migrate`")
}

func TestADatabaseThatLacksTheLastMigrationIsBehind(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), "DELETE FROM goose_db_version WHERE id = (SELECT max(id) FROM goose_db_version)")
	require.NoError(t, err)
	require.ErrorIs(t, migrate.CheckSchema(t.Context(), s), migrate.ErrSchemaBehind)
}

func TestADatabaseThatIsAheadIsServed(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (29990101000000, true)")
	require.NoError(t, err)
	require.NoError(t, migrate.CheckSchema(t.Context(), s))
	applied, err := migrate.Up(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, applied)
}

func TestADatabaseThatIsAwayIsNotBehind(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	err := migrate.CheckSchema(t.Context(), s)
	require.Error(t, err)
	require.NotErrorIs(t, err, migrate.ErrSchemaBehind)
}

func TestAMigrationThatWasInterruptedCanBeRepeated(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, testkit.EmptyDatabase(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := migrate.Up(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
	applied, err := migrate.Up(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, names(t), applied)
}
