package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// noSignals is for commands that end by themselves.
var noSignals = make(chan os.Signal)

func TestTheCommandFindsBothServersAndItsExitCodeIsKept(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen")
	command := `echo "$EARSHOT_TEST_POSTGRES_URL $TEMPORAL_ADDRESS" > "$0"; exit 7`
	code, err := run([]string{"sh", "-c", command, seen}, false, noSignals, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	text, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.Regexp(t, `^postgres://postgres:\w+@127\.0\.0\.1:\d+/postgres\?sslmode=disable 127\.0\.0\.1:\d+\n$`, string(text))
}

func TestASignalReachesTheCommandAndNothingIsLeft(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	signals := make(chan os.Signal, 1)
	go func() {
		_, _ = os.ReadFile(fifo) // returns when the command has set its trap
		signals <- syscall.SIGTERM
	}()
	// A loop replaces wait, because some shells miss a signal that arrives just before it.
	command := `trap 'exit 9' TERM; echo ready > "$0"; while :; do sleep 0.05; done`
	var progress strings.Builder
	code, err := run([]string{"sh", "-c", command, fifo}, false, signals, &progress)
	require.NoError(t, err)
	require.Equal(t, 9, code)
	_, dir, found := strings.Cut(progress.String(), "cluster in ")
	require.True(t, found)
	dir, _, _ = strings.Cut(dir, "\n")
	require.NoDirExists(t, filepath.Dir(dir))
}

func TestASignalDuringTheStartEndsIt(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	code, err := run([]string{"false"}, false, signals, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 128+int(syscall.SIGINT), code)
}

func TestACommandThatDoesNotExistIsOurFault(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	code, err := run([]string{"/no/such/command"}, false, noSignals, io.Discard)
	require.ErrorContains(t, err, "start /no/such/command")
	require.Equal(t, exitBroken, code)
}

func TestACommandKilledByASignalGivesTheShellsCode(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	code, err := run([]string{"sh", "-c", "kill -KILL $$"}, false, noSignals, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 128+int(syscall.SIGKILL), code)
}

func TestTheNextRunRemovesTheDataOfAKilledOne(t *testing.T) {
	t.Parallel()
	root, left := t.TempDir(), filepath.Join(t.TempDir(), dirPrefix+"1")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "postgres", "data"), 0o700))
	run := func() *sameEachRun {
		s, err := newSameEachRun(root, t.Logf)
		require.NoError(t, err)
		return s
	}
	killed := run()
	require.NoError(t, killed.keepDir(left))
	beside := run() // at the same time
	require.NoError(t, beside.keepDir("elsewhere"))
	require.DirExists(t, left)
	require.NoError(t, beside.lock.Close())
	require.NoError(t, killed.lock.Close()) // as the kernel does
	require.NoError(t, run().lock.Close())
	require.NoDirExists(t, left)
	require.NoError(t, run().lock.Close())
}

func TestOnlyADirectoryOfARunIsRemoved(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	first, err := newSameEachRun(root, t.Logf)
	require.NoError(t, err)
	require.NoError(t, first.keepDir(other))
	require.NoError(t, first.lock.Close())
	second, err := newSameEachRun(root, t.Logf)
	require.NoError(t, err)
	require.NoError(t, second.lock.Close())
	require.DirExists(t, other)
}
