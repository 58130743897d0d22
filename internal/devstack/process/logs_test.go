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
	require.Equal(t, "one\ntwo\nthree", Tail(path))
	last := strings.Repeat("line\n", failureLines)
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"+last), 0o600))
	require.Equal(t, strings.TrimSuffix(last, "\n"), Tail(path))
}

func TestTailOfAHugeLogReadsOnlyItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 3*tailBytes)+"\nlast\n"), 0o600))
	require.Regexp(t, `^x+\nlast$`, Tail(path))
	require.Less(t, len(Tail(path)), tailBytes)
}

func TestTailSaysThatALogIsMissing(t *testing.T) {
	t.Parallel()
	require.Contains(t, Tail(filepath.Join(t.TempDir(), "absent")), "no log")
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
	require.Equal(t, "second run", Tail(path))
	require.Equal(t, "first run", Tail(path+".old"))
}
