// Package testkit gives tests the servers and what stands beside them: a database, a
// namespace of Temporal, a receiver of webhooks, a log. Nothing here stands in for a part
// of Earshot. The running service is in apptest, a package of its own, so that an edit of
// the service doesn't run the tests again that don't use it.
//
// A Postgres and a Temporal server come from the environment (`make test` sets
// EARSHOT_TEST_POSTGRES_URL and TEMPORAL_ADDRESS); without them Main starts both
// for the one package, so that plain `go test` works too. Where the machine has no
// Postgres, Main says that the package was not run.
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
	// stopTime is ample: what the servers keep is thrown away.
	stopTime = 10 * time.Second
)

// DependOnSources has go test run a package again when any file of the repository changed, and not
// only one that the package imports: its tests run programs that they build, or commands of documents.
// The Makefile sets the variable to a sum of all files, and go test keeps no result when a variable
// that a test read has another value. A call in TestMain is too early: go test sees what tests read.
func DependOnSources() { _ = os.Getenv("EARSHOT_TEST_SOURCES") }

// Wait is how long a test waits for something that must happen. It is far
// longer than anything takes, because machines that run tests are busy: a Temporal
// with a hundred namespaces beside it was seen to stand still for ten seconds.
const Wait = 90 * time.Second

// Main runs a package's tests, for its TestMain. It makes sure that Postgres
// and Temporal are there.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Tests are the tests of a package: *testing.M, or one with something around it.
type Tests interface{ Run() int }

// Run is Main for a package that has something to tidy up before it exits.
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
	if err := os.Chmod(dir, 0o711); err != nil { // the user postgres must pass
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

// Root is the repository's root directory.
func Root() string {
	root, err := devstack.RepositoryRoot()
	if err != nil {
		panic(err) // tests run inside the repository
	}
	return root
}
