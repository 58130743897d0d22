package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

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

// TestHostileReceiversAreSurvivedWithinTheBoundOfMemory runs one receiver of each kind; `make
// faults` runs eight.
func TestHostileReceiversAreSurvivedWithinTheBoundOfMemory(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "earshot-faults-") // short, and open to the user postgres
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := options{connections: 8, short: true, only: hostileReceivers}
	chosen, err := o.plan()
	require.NoError(t, err)
	f, err := play(t.Context(), o, chosen, dir, program(), t.Logf)
	require.NoError(t, err)
	t.Log("\n" + f.text())
	require.Empty(t, f.Violations)
	require.Greater(t, f.Hostile.Kinds, 20)
	require.Equal(t, f.Hostile.Kinds, f.Hostile.Deliveries)
	if runtime.GOOS == "linux" {
		require.Len(t, f.Hostile.Growth, 3, "an API and two workers")
	}
}

func TestARunWithoutAPartIsRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]options{
		"a name that no part has":           {only: "kickstart"},
		"a part that needs production":      {only: "quickstart"},
		"a pattern that is not well formed": {only: "("},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := o.plan()
			require.ErrorContains(t, err, "-run")
		})
	}
	kept, err := options{only: "^$", keep: true}.plan()
	require.NoError(t, err, "a stack to look at")
	require.Empty(t, kept)
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
