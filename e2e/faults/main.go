// Command faults kills the service and its servers while events are written. It then proves from a
// receiver's ledger that nothing was lost (`make faults`).
//
// It starts everything itself, on loopback:
//   - Postgres
//   - Temporal with a database on disk
//   - an API and two workers, built with failpoints
//   - for each process and each server, a link that can be cut
//   - a receiver that is never killed
//
// It ends only its own processes. It removes its files unless it found something.
//
// The packages ledger, receiver and check decide which events should have arrived. They share no
// code with the service.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

type options struct {
	events      int
	killEvery   time.Duration
	connections int
	only        string
	asJSON      bool
	// production selects a stack as in production: temporal-server in place of the dev server, and
	// two APIs behind a balancer.
	production bool
	// keep leaves the stack running at the end, until the run is ended.
	keep bool
	// short is for CI: each timed scenario runs once, only the failpoints that every delivery passes
	// are tried, and there is one check at the end.
	short bool
}

// repository is the root directory, with tools/go.mod and temporal-dev.yaml.
var repository = "."

func main() {
	var o options
	flag.IntVar(&o.events, "events", 200_000, "events that are written while everything is killed at random")
	flag.DurationVar(&o.killEvery, "kill-every", 10*time.Second, "from one random kill to the next")
	flag.IntVar(&o.connections, "connections", 16, "connections that write")
	flag.StringVar(&o.only, "run", "", "a regular expression: do only the parts whose names match, of "+strings.Join(names(), ", "))
	flag.BoolVar(&o.production, "production", false, "take temporal-server on Postgres, not the dev server, and two APIs behind a balancer")
	flag.BoolVar(&o.short, "short", false, "run each timed scenario once, only the failpoints that every delivery passes, and one check at the end")
	flag.BoolVar(&o.keep, "keep", false, "leave the stack running at the end, until Ctrl-C")
	flag.BoolVar(&o.asJSON, "json", false, "print the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	figures, err := harness(ctx, o, progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	if err := figures.print(o.asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	if len(figures.Violations) > 0 {
		os.Exit(1)
	}
}

// part is one step of a run. Parts run one after the other.
type part struct {
	name string
	do   func(r *run, ctx context.Context, f *figures) error
	// production marks a part that needs a stack for production.
	production bool
}

// parts are in the order of increasing check time: a check covers everything that its stack has
// done.
var parts = []part{
	{"quickstart", (*run).quickstart, true},
	// These two are timed, so they run while the service is idle.
	{"commit", (*run).commitAndStart, false},
	{"attempt", (*run).attempts, false},
	{"rolling", (*run).rolling, true},
	{"exhaustion", (*run).exhaustion, false},
	{"points", (*run).points, false},
	{"random", (*run).random, false},
}

// partAlone is a part that has its own stack. These parts run first.
type partAlone struct {
	name string
	do   func(ctx context.Context, o options, dir, program string, f *figures, progress func(string, ...any)) error
}

var alone = []partAlone{
	{hostileReceivers, onHostile},
	{diskFull, onFullDisk},
}

func names() (all []string) {
	for _, p := range alone {
		all = append(all, p.name)
	}
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// plan has the parts of a run.
type plan struct {
	alone []partAlone
	parts []part
}

// plan returns the parts that -run chooses. It is an error if -run chooses none: such a run would
// pass without a check.
func (o options) plan() (chosen plan, err error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return plan{}, errors.Wrap(err, "read -run")
	}
	for _, p := range alone {
		if wanted.MatchString(p.name) {
			chosen.alone = append(chosen.alone, p)
		}
	}
	for _, p := range parts {
		if wanted.MatchString(p.name) && (o.production || !p.production) {
			chosen.parts = append(chosen.parts, p)
		}
	}
	if len(chosen.alone)+len(chosen.parts) == 0 && !o.keep {
		return plan{}, errors.Errorf("-run %q chooses none of the parts %s; some of them need -production",
			o.only, strings.Join(names(), ", "))
	}
	return chosen, nil
}

// harness builds the program and runs the parts.
func harness(ctx context.Context, o options, progress func(string, ...any)) (found *figures, err error) {
	chosen, err := o.plan()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "earshot-faults-")
	if err != nil {
		return nil, errors.Wrap(err, "make a directory")
	}
	defer func() {
		if found.anything(ctx, err) {
			progress("the ledger, the logs and the databases of this run stay in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	program := filepath.Join(dir, "earshot")
	progress("building the program with failpoints")
	if err := build(ctx, program); err != nil {
		return nil, err
	}
	return play(ctx, o, chosen, dir, program, progress)
}

// play runs the chosen parts in a directory and returns the figures. An error means that the
// harness itself failed. Faults of the service are violations in the figures.
func play(ctx context.Context, o options, chosen plan, dir, program string, progress func(string, ...any)) (*figures, error) {
	// The user postgres needs access to the directories below.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, errors.Wrap(err, "open the directory")
	}
	f := &figures{RetryDelays: retryDelays, KillEvery: o.killEvery, Kills: map[string]int{}}
	for _, p := range chosen.alone {
		if err := p.do(ctx, o, filepath.Join(dir, p.name), program, f, progress); err != nil {
			return f, errors.Wrap(err, p.name)
		}
	}
	if len(chosen.parts) == 0 && !o.keep {
		return f, nil
	}
	return f, onStack(ctx, o, chosen.parts, filepath.Join(dir, "stack"), program, f, progress)
}

// onStack runs the parts that share a stack.
func onStack(
	ctx context.Context, o options, chosen []part, dir, program string, f *figures, progress func(string, ...any),
) (err error) {
	progress("starting Postgres, Temporal, the API and two workers")
	r, err := open(ctx, o, dir, program, progress)
	if err != nil {
		return err
	}
	defer func() { r.close(f.anything(ctx, err)) }()
	if err := f.versions(ctx, r); err != nil {
		return err
	}
	for i, p := range chosen {
		progress("part %s", p.name)
		if err := p.do(r, ctx, f); err != nil {
			r.tellLogs(ctx)
			return errors.Wrap(err, p.name)
		}
		if o.short && i < len(chosen)-1 {
			continue
		}
		if err := f.take(ctx, p.name, r); err != nil {
			return errors.Wrap(err, p.name)
		}
	}
	before := f.Unasked
	f.count(r)
	if n := f.Unasked - before; n > 0 {
		f.violation("%d processes ended by themselves", n)
	}
	for _, p := range chosen {
		switch p.name {
		case "points":
			f.missPoints(o)
		case "random":
			f.missFaults(o, r)
		}
	}
	if o.keep {
		r.stack.tellAddresses()
		<-ctx.Done()
	}
	return nil
}

// build compiles the program with failpoints.
func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "failpoints,nomsgpack", "-o", program, "./cmd/earshot")
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Wrapf(err, "build the program: %s", out)
	}
	return nil
}

func (f *figures) print(asJSON bool) error {
	if !asJSON {
		fmt.Print(f.text())
		return nil
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return errors.Wrap(err, "print")
	}
	return nil
}
