package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/failpoint"
	"earshot/internal/testkit"
)

// built is the path at which TestMain builds the program with failpoints.
var built string

// program is the path of the built program.
func program() string {
	testkit.DependOnSources()
	return built
}

// TestMain leaves the whole package to `make test-all`: it compiles the program with its
// failpoints and runs it under load.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		return
	}
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	var err error
	if repository, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "earshot-faults-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = filepath.Join(dir, "earshot")
	if err := build(context.Background(), built); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// TestNothingIsLostWhileEverythingIsKilled is the short form of `make faults`.
func TestNothingIsLostWhileEverythingIsKilled(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "earshot-faults-") // short, and open to the user postgres
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f, err := play(t.Context(), options{
		events: 500, killEvery: 2 * time.Second, connections: 8, short: true, only: "commit|attempt|points|random",
	}, dir, program(), t.Logf)
	require.NoError(t, err)
	t.Log("\n" + f.text())
	require.Empty(t, f.Violations)
	require.GreaterOrEqual(t, f.RandomEvents, 500)
	for _, what := range []string{"api", "worker-1", "worker-2", "postgres", "temporal"} {
		require.Positive(t, f.Kills[what], what)
	}
	cuts := 0
	for what, n := range f.Kills {
		if strings.HasPrefix(what, "cut ") {
			cuts += n
		}
	}
	require.GreaterOrEqual(t, cuts, 2, "one that refuses and one that is silent")
	require.Len(t, f.Points, 11, "the points that every change, delivery and end-user passes")
	require.Positive(t, f.Outside.Confirmed)
	require.Equal(t, 1, f.Outside.Left, "who was exported and erased")
	require.Positive(t, f.Outside.Copied)
}

// TestHostileReceiversAreSurvivedWithinTheBoundOfMemory runs one receiver of each kind; `make
// faults` runs eight.
func TestHostileReceiversAreSurvivedWithinTheBoundOfMemory(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "earshot-faults-") // Short and open, as above.
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f, err := play(t.Context(), options{connections: 8, short: true, only: hostileReceivers}, dir, program(), t.Logf)
	require.NoError(t, err)
	t.Log("\n" + f.text())
	require.Empty(t, f.Violations)
	require.Greater(t, f.Hostile.Kinds, 20)
	require.Equal(t, f.Hostile.Kinds, f.Hostile.Deliveries)
	if runtime.GOOS == "linux" {
		require.Len(t, f.Hostile.Growth, 3, "an API and two workers")
	}
}

func TestAProgramWithFailpointsRefusesOneThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"befor-send=1", "before-send", "before-send=0"} {
		cmd := exec.Command(program(), "--help")
		cmd.Env = append(cleanEnviron(), failpoint.Variable+"="+wrong)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, wrong)
		require.Contains(t, string(out), "is not the name of a point and a number", wrong)
	}
}
