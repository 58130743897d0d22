package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTailReturnsTheLastLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600))
	require.Equal(t, "two\nthree", Tail(path, 2))
	require.Equal(t, "one\ntwo\nthree", Tail(path, 10))
}

func TestTailOfAHugeLogReadsOnlyItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 3*tailBytes)+"\nlast\n"), 0o600))
	require.Equal(t, "last", Tail(path, 1))
	require.LessOrEqual(t, len(Tail(path, 2)), tailBytes)
}

func TestTailSaysThatALogIsMissing(t *testing.T) {
	t.Parallel()
	require.Contains(t, Tail(filepath.Join(t.TempDir(), "absent"), 5), "no log")
}

func TestANewLogKeepsThePreviousOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	for _, text := range []string{"first run", "second run"} {
		file, err := NewLog(path)
		require.NoError(t, err)
		_, err = file.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	require.Equal(t, "second run", Tail(path, 1))
	require.Equal(t, "first run", Tail(path+".old", 1))
}
