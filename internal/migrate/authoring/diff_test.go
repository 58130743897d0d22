package authoring_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/migrate/authoring"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// names returns the files of the embedded migrations, oldest first.
func names(t *testing.T) []string {
	t.Helper()
	found, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
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
	known := names(t)
	found, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	require.NoError(t, err)
	var text string
	for _, path := range found {
		if slices.Contains(known, filepath.Base(path)) {
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
		err := diff(t.Context(), fixture.Open(t, testkit.EmptyDatabase(t)), dir, "drift")
		require.ErrorIs(t, err, migrate.ErrNoPlan, "run `make migration name=…`; it would write %s", written(t, dir))
	}
	require.Empty(t, written(t, dir))
}

// diffs are both halves of a comparison.
var diffs = []func(ctx context.Context, s *postgres.DB, dir, name string) error{authoring.Diff, authoring.DiffIndexes}

// This checks the comparison itself: it has to detect each kind of difference. One migration makes all
// of them, because a replay of the migrations takes seconds.
func TestAChangeThatNoMigrationMadeIsSeen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ change, remedy string }{
		"a column that is missing":        {`ALTER TABLE boards DROP COLUMN description`, `ADD COLUMN "description"`},
		"a column too many":               {`ALTER TABLE boards ADD COLUMN extra text`, `DROP COLUMN "extra"`},
		"an index too many":               {`CREATE INDEX extra ON tags (color)`, `DROP INDEX CONCURRENTLY IF EXISTS "extra"`},
		"an index that is missing":        {`DROP INDEX post_board_id_slug`, `CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "post_board_id_slug"`},
		"a reference that is missing":     {`ALTER TABLE tags DROP CONSTRAINT tags_boards_board`, `ADD CONSTRAINT "tags_boards_board" FOREIGN KEY ("organization_id", "board_id")`},
		"a reference too many":            {`ALTER TABLE tags ADD CONSTRAINT another FOREIGN KEY (organization_id) REFERENCES organizations (id)`, `DROP CONSTRAINT "another"`},
		"a reference without its owner":   {`ALTER TABLE changelog_entries DROP CONSTRAINT changelog_entries_boards_board; ALTER TABLE changelog_entries ADD CONSTRAINT changelog_entries_boards_board FOREIGN KEY (board_id) REFERENCES boards (id)`, `ADD CONSTRAINT "changelog_entries_boards_board" FOREIGN KEY ("organization_id", "board_id")`},
		"a deletion that works otherwise": {`ALTER TABLE attempts DROP CONSTRAINT attempts_deliveries_delivery; ALTER TABLE attempts ADD CONSTRAINT attempts_deliveries_delivery FOREIGN KEY (organization_id, delivery_id) REFERENCES deliveries (organization_id, id)`, `ADD CONSTRAINT "attempts_deliveries_delivery" FOREIGN KEY ("organization_id", "delivery_id") REFERENCES "deliveries" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE CASCADE`},
	}
	later := "-- +goose Up\n"
	for _, c := range cases {
		later += c.change + ";\n"
	}
	dir := copied(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, next(t)+"_test.sql"), []byte(later), 0o600))
	rehash(t, dir)
	for _, diff := range diffs {
		require.NoError(t, diff(t.Context(), fixture.Open(t, testkit.EmptyDatabase(t)), dir, "remedy"))
	}
	remedies := written(t, dir)
	for what, c := range cases {
		t.Run(what, func(t *testing.T) { require.Contains(t, remedies, c.remedy) })
	}
}
