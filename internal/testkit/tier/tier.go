// Package tier marks the tests that `make test` leaves to `make test-all`, and the tools that a
// test needs.
package tier

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"earshot/internal/needs"
)

// NotRun is the start of the message of a test that was skipped because a tool is missing. At its
// end `make test` lists these messages.
const NotRun = "NOT RUN: needs "

// Slow leaves the test to `make test-all` and states the reason for its length. The call is the
// first line of the test. It is for tests of two seconds and more. No check enforces this, because
// the duration depends on the machine and on the other tests.
func Slow(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("only in make test-all: %s", reason)
	}
}

// Repeats returns the number of runs of a race, so that its steps interleave in many ways. The few of
// `make test` find a rule that breaks often, and the many of `make test-all` a rare one.
func Repeats() int {
	if testing.Short() {
		return 5
	}
	return 20
}

// OneByOne excludes a test from `make race`. Such a test sends thousands of requests in sequence,
// and the race detector makes each several times slower.
func OneByOne(t testing.TB) {
	t.Helper()
	if underRaceDetector {
		t.Skip("nothing runs beside anything else here, so there is no race to find")
	}
}

// Needs skips the test if one of the tools is missing. In CI, where all tools are installed, it
// fails the test.
func Needs(t testing.TB, tools ...string) {
	t.Helper()
	present := needs.Present(t.Context())
	for _, name := range tools {
		if tool := needs.Named(name); !slices.Contains(present, name) {
			if inCI() {
				t.Fatalf("%s is missing, and CI leaves out no test: %s", name, needs.Command([]needs.Tool{tool}))
			}
			t.Skip(NotRun + name)
		}
	}
}

// inCI reports whether the variable that every CI system sets is true.
func inCI() bool {
	ci, _ := strconv.ParseBool(os.Getenv("CI"))
	return ci
}

// Properties sets the number of cases and steps for each property of a package in `make test`.
// TestMain calls it. Without it, -short divides the cases by five and the steps by two without
// notice. Flags on the command line take precedence.
func Properties(cases, steps int) {
	flag.Parse()
	if !testing.Short() {
		return // rapid's defaults: 100 cases and 30 steps
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]int{"rapid.checks": cases * 5, "rapid.steps": steps * 2} {
		if !given[name] && flag.Lookup(name) != nil {
			_ = flag.Set(name, strconv.Itoa(value)) // always valid
		}
	}
}

// HasPostgres reports whether the machine has a Postgres, for the TestMain of a package that needs
// one. If it has none, HasPostgres prints that the package was not run. In CI it returns true, so
// that the start of the server fails.
func HasPostgres() bool {
	if inCI() || slices.Contains(needs.Present(context.Background()), "postgres") {
		return true
	}
	fmt.Println(NotRun + "postgres")
	return false
}
