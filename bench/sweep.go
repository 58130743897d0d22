package main

import (
	"context"
	"os"
	"strconv"

	"earshot/bench/measurement"
)

// sweepRates range from one workflow for each event to a rate beyond the capacity of two
// processors, at which the latencies leave the plot.
var sweepRates = []int{25, 50, 100, 200, 300, 400, 500, 600, 700, 800}

const plotFile = "docs/images/latency.svg"

// measureSweep prints the time to arrive at each rate. It ends at the first rate that the machine
// can't keep up with.
func (s *stack) measureSweep(ctx context.Context, o options) error {
	var all []measurement.Cost
	for _, rate := range sweepRates {
		one, err := s.rounds(ctx, o, costSubject{measurement.Cost{Rate: rate, Delivered: true}, func(ctx context.Context) (measured, error) {
			return s.deliveredAt(ctx, rate, o.period)
		}})
		if err != nil {
			return err
		}
		all = append(all, one)
		if one.P50 > saturated {
			break
		}
	}
	if o.asJSON {
		if err := printJSON(all); err != nil {
			return err
		}
	} else {
		costTable(all).print(os.Stdout)
	}
	if !o.write {
		return nil
	}
	return writeFile(plotFile, plot("Post to arrived webhook", "posts a second", "milliseconds, logarithmic", []line{
		{"p50", points(all, func(c measurement.Cost) float64 { return c.P50 })},
		{"p99", points(all, func(c measurement.Cost) float64 { return c.P99 })},
	}))
}

// saturated is a p50 in milliseconds that only a growing queue can cause.
const saturated = 1000

func points(all []measurement.Cost, of func(measurement.Cost) float64) []point {
	list := make([]point, len(all))
	for i, c := range all {
		list[i] = point{float64(c.Rate), of(c)}
	}
	return list
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
