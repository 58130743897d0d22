package commands

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"earshot/internal/devstack/statedir"

	"github.com/stretchr/testify/require"
)

func TestResetRemovesOnlyTheFilesThatUpCreated(t *testing.T) {
	t.Parallel()
	d := statedir.Dir(t.TempDir())
	for _, name := range []string{
		"dev.env", "secrets.env", "earshot.log", "earshot.log.old", "up.log", "mail/whk_1.eml", "listen-id",
		"postgres/postgres.log", "temporal/temporal.db", "temporal/temporal.pid", "bin/temporal", "mine.txt",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(d.File(name)), 0o755))
		require.NoError(t, os.WriteFile(d.File(name), nil, 0o644))
	}
	require.NoError(t, Reset(t.Context(), d, io.Discard))
	require.ElementsMatch(t, []string{"bin/temporal", "mine.txt", "up.lock"}, filesIn(t, string(d)))
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path) // always below dir
			names = append(names, name)
		}
		return err
	}))
	return names
}
