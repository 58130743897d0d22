// Command bench measures the running stack (`make up`, then `make bench`): each
// figure with its floor, the least that Postgres or Temporal need for the same
// work, from the same minute on the same machine. Only the ratio of the two
// travels from one machine to another.
//
// With -isolation it measures what a healthy webhook notices of a burst at a receiver
// that is dead, hangs or drips, and of another organization's.
//
// It works in organizations of its own, which it removes in the end, and its
// receivers listen on loopback.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

type options struct {
	runs             int
	posts            int
	connections      int
	period           time.Duration
	rates            []int
	asJSON           bool
	only             string
	lists            bool
	isolation        bool
	costs            bool
	burst, burstRate int
}

func main() {
	o := options{rates: []int{50, 300}}
	flag.IntVar(&o.runs, "runs", 3, "how often each is measured; median and range are printed")
	flag.IntVar(&o.posts, "n", 5000, "posts in a burst, and workflows of the floor")
	flag.IntVar(&o.connections, "connections", 32, "connections of a burst; identify takes half")
	flag.DurationVar(&o.period, "period", 10*time.Second, "how long identify and the steady rates are measured")
	flag.BoolVar(&o.asJSON, "json", false, "print JSON")
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name; commas between several, with -isolation")
	flag.BoolVar(&o.lists, "lists", false, "measure the lists instead, on what make bench-seed made")
	flag.BoolVar(&o.isolation, "isolation", false, "measure instead what a healthy webhook notices of a burst beside it")
	flag.BoolVar(&o.costs, "costs", false, "measure instead, as JSON, what an event takes of each process; bench/scaling reckons with it")
	flag.IntVar(&o.burstRate, "burst-rate", 100, "events of that burst a second; from some 250 on two processors are busy with the burst alone")
	flag.IntVar(&o.burst, "burst", 10_000, "events of that burst")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measured is the outcome of one run.
type measured struct {
	// PerSecond counts finished operations, P50 and P99 are of one operation.
	PerSecond float64       `json:"perSecond"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	// CPU is what everything but this program used, for one operation.
	CPU time.Duration `json:"cpu"`
	// workflows saw the deliveries through.
	workflows int
}

// subject is one thing to measure.
type subject struct {
	name string
	// floor names the subject that this one is compared with.
	floor string
	run   func(ctx context.Context) (measured, error)
}

func run(ctx context.Context, o options) (err error) {
	if o.lists {
		return measureLists(ctx, o)
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	if o.isolation {
		return s.measureIsolation(ctx, o)
	}
	if o.costs {
		return s.measureCosts(ctx, o)
	}
	results := map[string][]measured{}
	subjects := slices.DeleteFunc(s.subjects(o), func(b subject) bool { return !strings.Contains(b.name, o.only) })
	// Round by round and not one by one: a neighbour that comes and goes then
	// disturbs all of them alike.
	for round := range o.runs {
		for _, b := range subjects {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.runs, b.name)
			m, err := b.run(ctx)
			if err != nil {
				return errors.Wrap(err, b.name)
			}
			results[b.name] = append(results[b.name], m)
		}
	}
	if o.asJSON {
		return printJSON(results)
	}
	printTable(subjects, results)
	return nil
}

func printJSON(results map[string][]measured) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(results); err != nil {
		return errors.Wrap(err, "print")
	}
	return nil
}

func printTable(subjects []subject, results map[string][]measured) {
	fmt.Printf("%-44s %10s %17s %9s %9s %9s %8s\n", "", "per second", "range", "p50", "p99", "CPU/op", "of floor")
	for _, b := range subjects {
		all := results[b.name]
		m := median(all)
		ratio := ""
		if floor := results[b.floor]; len(floor) > 0 {
			ratio = fmt.Sprintf("%.2f", m.PerSecond/median(floor).PerSecond)
		}
		low := slices.MinFunc(all, bySpeed)
		high := slices.MaxFunc(all, bySpeed)
		fmt.Printf("%-44s %10.0f %8.0f-%-8.0f %9s %9s %9s %8s\n",
			b.name, m.PerSecond, low.PerSecond, high.PerSecond, brief(m.P50), brief(m.P99), brief(m.CPU), ratio)
	}
}

func bySpeed(a, b measured) int { return int(a.PerSecond - b.PerSecond) }

// median is the run in the middle, by speed.
func median(all []measured) measured {
	sorted := slices.SortedFunc(slices.Values(all), bySpeed)
	return sorted[len(sorted)/2]
}

func brief(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	default:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
}
