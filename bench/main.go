// Command bench measures the running stack (`make up`, then `make bench`). It measures each figure
// together with its floors: the least that Postgres or Temporal need for the same work, on the same
// machine in the same minutes. Only the ratio to a floor can be compared between machines. After
// each run bench checks the ledger: every acknowledged write must exist exactly once, or the
// measurement fails.
//
// The read scenarios use one large organization, which bench seeds if it is missing (`make
// bench-seed`). The write scenarios use new organizations. At the end bench restores the previous
// state. Receivers listen on loopback.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/bench/seeding"
)

type options struct {
	runs             int
	posts            int
	connections      int
	period           time.Duration
	rates            []int
	asJSON           bool
	only             string
	scale            float64
	write            bool
	mode             string
	burst, burstRate int
}

// modes are the other measurements, each with a flag of its name.
var modes = []struct {
	name, usage string
	// alone marks a mode that opens its own connections.
	alone bool
	run   func(ctx context.Context, s *stack, o options) error
}{
	{"lists", "measure the lists instead, on the rows of make bench-seed", true,
		func(ctx context.Context, _ *stack, o options) error { return measureLists(ctx, o) }},
	{"isolation", "measure instead how much a burst delays a healthy webhook beside it", false,
		func(ctx context.Context, s *stack, o options) error { return s.measureIsolation(ctx, o) }},
	{"readers", "measure instead the latency of a public page, and of the API beside readers", false,
		func(ctx context.Context, s *stack, o options) error { return s.measureReaders(ctx, o) }},
	{"costs", "measure instead, as JSON, the cost of an event in each process; bench/scaling uses it", false,
		func(ctx context.Context, s *stack, o options) error { return s.measureCosts(ctx, o) }},
	{"sweep", "measure instead the time from post to webhook, at rates up to the capacity of the machine; -write also plots it", false,
		func(ctx context.Context, s *stack, o options) error { return s.measureSweep(ctx, o) }},
	{"growth", "measure instead the cost of operations at a tenth of the rows and at all rows; it seeds anew", false,
		func(ctx context.Context, s *stack, o options) error { return s.measureGrowth(ctx, o) }},
	{"guard", "hold three ratios against those of bench/guard.json, on a service of its own (make bench-guard); with -write they are written there", true,
		func(ctx context.Context, _ *stack, o options) error { return measureGuard(ctx, o) }},
	{"new", "hold the third burst on a new database against one after ANALYZE, on a service of its own (make bench-new)", true,
		func(ctx context.Context, _ *stack, o options) error { return measureNewDatabase(ctx, o) }},
	{"all", "measure the figures, then -sweep, then -growth", false, measureAll},
}

func main() {
	o := options{rates: []int{50, 300, 600}}
	flag.IntVar(&o.runs, "runs", 3, "how often each is measured; median and range are printed")
	flag.IntVar(&o.posts, "n", 5000, "posts in a burst, and workflows of the floor")
	flag.IntVar(&o.connections, "connections", 32, "connections of a burst; other requests take half")
	flag.DurationVar(&o.period, "period", 10*time.Second, "how long each is measured; a floor for half as long")
	flag.BoolVar(&o.asJSON, "json", false, "print JSON")
	flag.StringVar(&o.only, "only", "", "measure only subjects with this text in their names, and their floors; -isolation takes several, comma-separated")
	flag.Float64Var(&o.scale, "scale", 1, "how much to seed where nothing is: 1 is 1,000,000 contacts, 200,000 posts and 2,000,000 votes on one of them")
	flag.BoolVar(&o.write, "write", false, "also write the tables, plots and costs of the repository; run it at its root")
	flag.IntVar(&o.burstRate, "burst-rate", 100, "with -isolation, events of the burst a second; from some 250 on two processors are busy with the burst alone")
	flag.IntVar(&o.burst, "burst", 10_000, "with -isolation, events of the burst")
	for _, m := range modes {
		flag.BoolFunc(m.name, m.usage, func(string) error {
			if o.mode != "" {
				return errors.Errorf("-%s and -%s can't be measured at once", o.mode, m.name)
			}
			o.mode = m.name
			return nil
		})
	}
	flag.Usage = usageText
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	measure := func(ctx context.Context) error { return run(ctx, o) }
	if flag.Arg(0) == readersProcess {
		measure = func(ctx context.Context) error { return beReaders(ctx, os.Stdin) }
	}
	if err := measure(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usageText() {
	fmt.Fprint(flag.CommandLine.Output(), `Measures the stack of `+"`make up`"+` beside its floors. As make bench ARGS="…":

  (nothing)                     every figure, three times: some 15 minutes
  -runs 1 -period 3s            every figure, quickly
  -only vote                    some of them, with their floors
  -write                        … into bench/results.md
  -all -write                   everything that the repository has of it, some 20 minutes

`)
	flag.PrintDefaults()
}

func run(ctx context.Context, o options) (err error) {
	if o.runs < 1 || o.posts < 1 || o.connections < 2 || o.period <= 0 || o.scale <= 0 || o.burst < 1 || o.burstRate < 1 {
		return errors.New("-runs, -n, -period, -scale, -burst and -burst-rate must be more than 0, and -connections more than 1")
	}
	measure := func(ctx context.Context, s *stack, o options) error { return s.measureFigures(ctx, o) }
	for _, m := range modes {
		if m.name != o.mode {
			continue
		}
		if m.alone {
			return m.run(ctx, nil, o)
		}
		measure = m.run
	}
	at, err := addressesFromEnv()
	if err != nil {
		return err
	}
	s, err := open(ctx, at)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	return measure(ctx, s, o)
}

func measureAll(ctx context.Context, s *stack, o options) error {
	if err := s.measureFigures(ctx, o); err != nil {
		return err
	}
	o.runs = 1
	if err := s.measureSweep(ctx, o); err != nil {
		return err
	}
	return s.measureGrowth(ctx, o)
}

// measureFigures measures every subject o.runs times.
func (s *stack) measureFigures(ctx context.Context, o options) error {
	subjects := s.subjects(o)
	if len(subjects) == 0 {
		return errors.Errorf("nothing has %q in its name", o.only)
	}
	results := map[string][]measured{}
	began := time.Now()
	// Each round measures all subjects once. A temporary load on the machine then disturbs all
	// subjects alike.
	for round := range o.runs {
		for i, b := range subjects {
			fmt.Fprintf(os.Stderr, "%6s  round %d of %d, %2d of %d: %s\n",
				time.Since(began).Round(time.Second), round+1, o.runs, i+1, len(subjects), b.name)
			m, err := s.once(ctx, o, b)
			if err != nil {
				return err
			}
			results[b.name] = append(results[b.name], m)
		}
	}
	if o.asJSON {
		if err := printJSON(results); err != nil {
			return err
		}
	} else {
		printTable(os.Stdout, subjects, results)
	}
	if !o.write {
		return nil
	}
	return s.writeResults(ctx, o, subjects, results, time.Since(began))
}

// once measures one subject a single time. It seeds the large organization first if the subject
// needs it.
func (s *stack) once(ctx context.Context, o options, b subject) (measured, error) {
	if b.seeded && s.seeded == nil {
		if err := s.openSeeded(ctx, seeding.Full.Times(o.scale)); err != nil {
			return measured{}, err
		}
	}
	m, err := b.run(ctx)
	if err != nil {
		return m, errors.Wrap(err, b.name)
	}
	return m, nil
}
