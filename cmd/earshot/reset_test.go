package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResetRemovesOnlyTheFilesThatUpCreated(t *testing.T) {
	t.Parallel()
	d := stateDir(t.TempDir())
	for _, name := range []string{
		"dev.env", "secrets.env", "earshot.log", "earshot.log.old", "up.log", "mail/whk_1.eml", "listen-id",
		"postgres/postgres.log", "temporal/temporal.db", "temporal/temporal.pid", "bin/temporal", "mine.txt",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(d.file(name)), 0o755))
		require.NoError(t, os.WriteFile(d.file(name), nil, 0o644))
	}
	require.NoError(t, reset(t.Context(), d, io.Discard))
	require.ElementsMatch(t, []string{"bin/temporal", "mine.txt", "temporal/temporal.pid", "up.lock"}, filesIn(t, string(d)))
}

func TestResetAsksOnATerminalOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := confirm(strings.NewReader("yes\n"), &out, stateDir(t.TempDir()))
	require.ErrorContains(t, err, "use --yes")
	require.Empty(t, out.String())
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
