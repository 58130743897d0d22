// Package testkit provides tests with real servers and tools: a database, a Temporal namespace, a
// webhook receiver, a log. It has no fakes of Earshot's parts. The running service is in the
// separate package apptest, so that an edit of the service doesn't rerun tests that don't use it.
//
// The addresses of a Postgres and a Temporal server come from the environment (`make test` sets
// EARSHOT_TEST_POSTGRES_URL and TEMPORAL_ADDRESS). Without these variables, Main starts both
// servers for the package, so that plain `go test` works too. If the machine has no Postgres, Main
// reports that the package was not run.
package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
	"earshot/internal/testkit/tier"
)

const (
	postgresVariable = "EARSHOT_TEST_POSTGRES_URL"
	temporalVariable = "TEMPORAL_ADDRESS"
	// stopTime is ample, because the servers' data is discarded.
	stopTime = 10 * time.Second
)

// DependOnSources makes go test rerun a package when any file of the repository has changed. It is
// for tests that run programs they build, or commands in documents. The Makefile sets the variable
// to a checksum of all files. A cached result is not used when a variable that the test read has
// changed. A call in TestMain is too early, because go test records only variables that tests read.
func DependOnSources() { _ = os.Getenv("EARSHOT_TEST_SOURCES") }

// Wait bounds the wait of a test for something that must happen. It is much longer than necessary,
// because test machines are busy. An activity that a busy Temporal loses comes back after its heartbeat
// timeout, which is up to a minute (workflows/options.go), and a pause.
const Wait = 3 * time.Minute

// Tick is the interval between the looks of a test that waits. A look is often a request whose answer is checked
// against the contract. With looks every 200 ms package workflows takes 9 % less processor time than with looks
// every 20 ms, but tests that wait several times in a row take longer.
const Tick = 100 * time.Millisecond

// Main runs the tests of a package, for its TestMain. It ensures that Postgres and Temporal run.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Tests are the tests of a package: *testing.M or a wrapper.
type Tests interface{ Run() int }

// Run is Main for a package with a clean-up before it exits.
func Run(m Tests) int {
	if !tier.HasPostgres() {
		return 0
	}
	stop, err := ensureStack()
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return 1
	}
	code := m.Run()
	emptying.Wait()
	return code
}

func ensureStack() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	if os.Getenv(postgresVariable) != "" && os.Getenv(temporalVariable) != "" {
		return stop, nil
	}
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "earshot-test-")
	if err != nil {
		return stop, errors.Wrap(err, "make a temporary directory")
	}
	stops = append(stops, func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // lets the user postgres pass
		return stop, errors.Wrap(err, "open the temporary directory")
	}
	report := devstack.Report(func(format string, args ...any) { fmt.Fprintf(os.Stderr, "testkit: "+format+"\n", args...) })
	if os.Getenv(postgresVariable) == "" {
		at := filepath.Join(dir, "postgres")
		p, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: at, Report: report})
		if err != nil {
			return stop, err
		}
		stops = append(stops, func() { withTimeout(p.Stop); _ = devstack.Remove(at) })
		_ = os.Setenv(postgresVariable, p.URL("postgres"))
	}
	if os.Getenv(temporalVariable) == "" {
		binary, err := devstack.TemporalBinary(ctx, Root(), report)
		if err != nil {
			return stop, err
		}
		t, err := devstack.StartTemporal(ctx, devstack.TemporalOptions{
			Dir: filepath.Join(dir, "temporal"), Binary: binary, UIPort: devstack.Headless, Report: report,
		})
		if err != nil {
			return stop, err
		}
		stops = append(stops, func() { withTimeout(t.Stop) })
		_ = os.Setenv(temporalVariable, t.Address())
	}
	return stop, nil
}

func withTimeout(stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
	}
}

// Root returns the repository's root directory.
func Root() string {
	root, err := devstack.RepositoryRoot()
	if err != nil {
		panic(err) // tests run inside the repository
	}
	return root
}
