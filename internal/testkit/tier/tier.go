// Package tier says which tests `make test` leaves to `make test-all`, and which tools a
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

// NotRun begins the message of a test that was skipped for want of a tool. `make test`
// finds these messages and lists them at its end.
const NotRun = "NOT RUN: needs "

// Slow leaves the test to `make test-all`, with the reason for its length. It stands in
// the test's first line. It is for tests of two seconds and more; nothing checks that, because
// the time of a test depends on the machine and on the tests beside it.
func Slow(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("only in make test-all: %s", reason)
	}
}

// OneByOne leaves a test out of `make race`: it sends thousands of requests, one at a time,
// and the detector makes each several times as slow.
func OneByOne(t testing.TB) {
	t.Helper()
	if underRaceDetector {
		t.Skip("nothing runs beside anything else here, so there is no race to find")
	}
}

// Needs skips the test where one of the tools is missing. In CI, which installs all of
// them, it fails the test.
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

// inCI reads what every system of CI sets.
func inCI() bool {
	ci, _ := strconv.ParseBool(os.Getenv("CI"))
	return ci
}

// Properties sets how many cases each property of a package is tried with by `make test`,
// and with how many steps, for its TestMain. Without it -short divides the cases by five
// and the steps by two and says nothing. Flags on the command line win.
func Properties(cases, steps int) {
	flag.Parse()
	if !testing.Short() {
		return // the defaults of rapid: 100 cases and 30 steps
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]int{"rapid.checks": cases * 5, "rapid.steps": steps * 2} {
		if !given[name] && flag.Lookup(name) != nil {
			_ = flag.Set(name, strconv.Itoa(value)) // a number that is one
		}
	}
}

// HasPostgres says whether the machine has a Postgres, for the TestMain of a package whose
// tests need one. Without one it prints that the package was not run; in CI the start of
// the server then fails.
func HasPostgres() bool {
	if inCI() || slices.Contains(needs.Present(context.Background()), "postgres") {
		return true
	}
	fmt.Println(NotRun + "postgres")
	return false
}
