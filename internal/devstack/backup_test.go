package devstack

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADatabaseIsRestoredAsItWasWhenItWasDumped(t *testing.T) {
	t.Parallel()
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	require.NoError(t, p.CreateDatabase(t.Context(), "diary"))
	diary := connect(t, p.URL("diary"))
	_, err := diary.Exec(t.Context(), noteDown)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "diary.dump")
	require.NoError(t, p.Dump(t.Context(), "diary", file))
	_, err = diary.Exec(t.Context(), "UPDATE notes SET text = 'changed'")
	require.NoError(t, err)
	require.NoError(t, p.Restore(t.Context(), "diary", file))
	require.Equal(t, "kept", readNote(t, p.URL("diary")))
	require.Error(t, diary.Ping(t.Context()), "who was connected isn't any more")
	require.ErrorContains(t, p.Restore(t.Context(), "diary", file+"x"), "No such file")
}
