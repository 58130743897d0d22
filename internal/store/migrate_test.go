package store_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/store"
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

// copied returns a copy of the repository's migrations that a test can add to.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(testkit.Root(), "ent", "migrations"))))
	return dir
}

// written returns the names and contents of the files that a comparison added to a directory.
func written(t *testing.T, dir string) string {
	t.Helper()
	known := map[string]bool{}
	for _, name := range names(t) {
		known[name] = true
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	require.NoError(t, err)
	var text string
	for _, path := range found {
		if known[filepath.Base(path)] {
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		text += filepath.Base(path) + ":\n" + string(content)
	}
	return text
}

// next is a version between the last migration and a file that a comparison writes now.
func next(t *testing.T) string {
	t.Helper()
	all := names(t)
	last, err := goose.NumericComponent(all[len(all)-1])
	require.NoError(t, err)
	return strconv.FormatInt(last+1, 10)
}

func rehash(t *testing.T, dir string) {
	t.Helper()
	files, err := sqltool.NewGooseDir(dir)
	require.NoError(t, err)
	sum, err := files.Checksum()
	require.NoError(t, err)
	require.NoError(t, migrate.WriteSumFile(files, sum))
}

func TestTheMigrationsBuildTheDeclaredSchema(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	for _, diff := range diffs {
		err := diff(fixture.Open(t, testkit.EmptyDatabase(t)), t.Context(), dir, "drift")
		require.ErrorIs(t, err, migrate.ErrNoPlan, "run `make migration name=…`; it would write %s", written(t, dir))
	}
	require.Empty(t, written(t, dir))
}

// diffs are both halves of a comparison.
var diffs = []func(s *store.Store, ctx context.Context, dir, name string) error{(*store.Store).Diff, (*store.Store).DiffIndexes}

// This checks the comparison itself: it has to detect each kind of difference.
func TestAChangeThatNoMigrationMadeIsSeen(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ change, remedy string }{
		"a column that is missing":        {`ALTER TABLE boards DROP COLUMN description`, `ADD COLUMN "description"`},
		"a column too many":               {`ALTER TABLE boards ADD COLUMN extra text`, `DROP COLUMN "extra"`},
		"an index too many":               {`CREATE INDEX extra ON tags (color)`, `DROP INDEX CONCURRENTLY IF EXISTS "extra"`},
		"an index that is missing":        {`DROP INDEX post_board_id_slug`, `CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "post_board_id_slug"`},
		"a reference that is missing":     {`ALTER TABLE tags DROP CONSTRAINT tags_boards_board`, `ADD CONSTRAINT "tags_boards_board" FOREIGN KEY ("organization_id", "board_id")`},
		"a reference too many":            {`ALTER TABLE tags ADD CONSTRAINT extra FOREIGN KEY (organization_id) REFERENCES organizations (id)`, `DROP CONSTRAINT "extra"`},
		"a reference without its owner":   {`ALTER TABLE tags DROP CONSTRAINT tags_boards_board; ALTER TABLE tags ADD CONSTRAINT tags_boards_board FOREIGN KEY (board_id) REFERENCES boards (id)`, `FOREIGN KEY ("organization_id", "board_id")`},
		"a deletion that works otherwise": {`ALTER TABLE attempts DROP CONSTRAINT attempts_deliveries_delivery; ALTER TABLE attempts ADD CONSTRAINT attempts_deliveries_delivery FOREIGN KEY (organization_id, delivery_id) REFERENCES deliveries (organization_id, id)`, `ON DELETE CASCADE`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := copied(t)
			later := "-- +goose Up\n" + c.change + ";\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, next(t)+"_test.sql"), []byte(later), 0o600))
			rehash(t, dir)
			for _, diff := range diffs {
				if err := diff(fixture.Open(t, testkit.EmptyDatabase(t)), t.Context(), dir, "remedy"); err != nil {
					require.ErrorIs(t, err, migrate.ErrNoPlan)
				}
			}
			require.Contains(t, written(t, dir), c.remedy)
		})
	}
}

func TestTheMigrationsAreThoseThatWereReleased(t *testing.T) {
	t.Parallel()
	files, err := sqltool.NewGooseDir(filepath.Join(testkit.Root(), "ent", "migrations"))
	require.NoError(t, err)
	require.NoError(t, migrate.Validate(files), "run `make migration` after an edit by hand of one that isn't released")
}

func TestMigrationsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, testkit.EmptyDatabase(t))
	applied, err := s.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, names(t), applied)
	require.NoError(t, s.CheckSchema(t.Context()))

	applied, err = s.Migrate(t.Context())
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
			done, err := s.Migrate(t.Context())
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
	err := fixture.Open(t, testkit.EmptyDatabase(t)).CheckSchema(t.Context())
	require.ErrorIs(t, err, store.ErrSchemaBehind)
	require.ErrorContains(t, err, "run `earshot migrate`")
}

func TestADatabaseThatLacksTheLastMigrationIsBehind(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), "DELETE FROM goose_db_version WHERE id = (SELECT max(id) FROM goose_db_version)")
	require.NoError(t, err)
	require.ErrorIs(t, s.CheckSchema(t.Context()), store.ErrSchemaBehind)
}

func TestADatabaseThatIsAheadIsServed(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (29990101000000, true)")
	require.NoError(t, err)
	require.NoError(t, s.CheckSchema(t.Context()))
	applied, err := s.Migrate(t.Context())
	require.NoError(t, err)
	require.Empty(t, applied)
}

func TestADatabaseThatIsAwayIsNotBehind(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	err := s.CheckSchema(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrSchemaBehind)
}

func TestAMigrationThatWasInterruptedCanBeRepeated(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, testkit.EmptyDatabase(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Migrate(ctx)
	require.ErrorIs(t, err, context.Canceled)
	applied, err := s.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, names(t), applied)
}
