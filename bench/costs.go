package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/bench/measurement"
)

// costRates range from one workflow for each event to full groups. The bursts show the cost when
// all processors are busy. The first burst makes no deliveries.
var costRates = []int{25, 50, 100, 200, 300, 400}

const costsFile = "bench/scaling/costs.json"

// measureCosts prints the input of bench/scaling.
func (s *stack) measureCosts(ctx context.Context, o options) error {
	all, err := s.costs(ctx, o, costRates)
	if err != nil {
		return err
	}
	if err := printJSON(all); err != nil {
		return err
	}
	if !o.write {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return errors.Wrap(err, "encode the costs")
	}
	if err := writeFile(costsFile, string(text)+"\n"); err != nil {
		return err
	}
	return s.writeCosts(ctx, o, all)
}

func (s *stack) writeCosts(ctx context.Context, o options, all []measurement.Cost) error {
	machine, err := s.machine(ctx)
	if err != nil {
		return err
	}
	return writeFile("bench/costs.md", fmt.Sprintf(`# Measured per event

Written by `+"`make bench ARGS=\"-costs -write\"`"+`, the median of %d runs of %s. %s

An event is a post by REST with one delivery to a receiver that answers at once. p50 and p99 are milliseconds from the time at which the request
was due to the arrival. The other columns are milliseconds of processor time per event. `+"`bench/scaling/costs.json`"+` has the same figures, and
[docs/scaling.md](../docs/scaling.md) draws conclusions. The bytes of the log depend on the time since the last checkpoint, because the first
change of a page after a checkpoint writes the whole page.

%s`, o.runs, o.period, machine, costTable(all).markdown()))
}

// costs measures the idle stack, two bursts and each rate.
func (s *stack) costs(ctx context.Context, o options, rates []int) ([]measurement.Cost, error) {
	var all []measurement.Cost
	for _, c := range s.costSubjects(o, rates) {
		one, err := s.rounds(ctx, o, c)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// rounds runs one load several times and returns the run with the median cost.
func (s *stack) rounds(ctx context.Context, o options, c costSubject) (measurement.Cost, error) {
	var all []measurement.Cost
	for range o.runs {
		fmt.Fprintln(os.Stderr, loadName(c.cost))
		m, err := c.run(ctx)
		if err != nil {
			return c.cost, errors.Wrap(err, loadName(c.cost))
		}
		one := c.cost
		one.CPU, one.WALBytes, one.Commits, one.Workflows = m.CPU, m.WALBytes, m.Commits, m.Workflows
		if !one.Idle {
			one.PerSecond, one.P50, one.P99 = m.PerSecond, milliseconds(m.P50), milliseconds(m.P99)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b measurement.Cost) int { return cmp.Compare(a.Total(), b.Total()) })
	return all[len(all)/2], nil
}

type costSubject struct {
	cost measurement.Cost
	run  func(ctx context.Context) (measured, error)
}

func (s *stack) costSubjects(o options, rates []int) []costSubject {
	all := []costSubject{
		{measurement.Cost{Idle: true}, func(ctx context.Context) (measured, error) { return s.idle(ctx, o.period) }},
		{measurement.Cost{}, func(ctx context.Context) (measured, error) {
			return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
				return burst(ctx, o.posts, o.connections, func(ctx context.Context, _ int) error {
					_, err := s.post(ctx, s.board)
					return err
				})
			})
		}},
		{measurement.Cost{Delivered: true}, func(ctx context.Context) (measured, error) { return s.deliveredInBurst(ctx, o) }},
	}
	for _, rate := range rates {
		all = append(all, costSubject{measurement.Cost{Rate: rate, Delivered: true}, func(ctx context.Context) (measured, error) {
			return s.deliveredAt(ctx, rate, o.period)
		}})
	}
	return all
}

// idle measures the stack without load, in operations of one second.
func (s *stack) idle(ctx context.Context, period time.Duration) (measured, error) {
	return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		return openLoop(ctx, 1, period, func(ctx context.Context, _ int, due time.Time) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(due.Add(time.Second))):
				return nil
			}
		})
	})
}

func loadName(c measurement.Cost) string {
	switch {
	case c.Idle:
		return "idle, a second"
	case c.Rate > 0:
		return fmt.Sprintf("%d/s", c.Rate)
	case c.Delivered:
		return "burst"
	default:
		return "burst, nobody subscribes"
	}
}

func costTable(all []measurement.Cost) table {
	t := table{{"load", "a second", "p50", "p99", "workflows", "service", "Postgres", "Temporal", "client", "commits", "log, kB"}}
	for _, c := range all {
		t = append(t, []string{
			loadName(c), whole(c.PerSecond), ms(c.P50), ms(c.P99), fmt.Sprintf("%.3f", c.Workflows), ms(c.Service), ms(c.Postgres), ms(c.Temporal), ms(c.Client),
			ms(c.Commits), ms(c.WALBytes / 1000),
		})
	}
	return t
}
