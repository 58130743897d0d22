package main

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/go-faster/errors"

	"earshot/bench/measurement"
)

// part is the processor time of one step in each process, in milliseconds.
type part struct{ service, postgres, temporal, client float64 }

// costs are the input of the simulation.
type costs struct {
	// The costs of a post with its event, of one more attempt in a workflow, of the workflow around
	// the attempts, and of one second without load.
	request, delivery, workflow, idle part
	// wake is the extra cost of an event if all processors are idle, because each process then
	// wakes for that event alone. On busy processors this cost is shared.
	wake part
	// wait is the time in milliseconds that an arrival takes in addition to processor time, mostly
	// for the disk.
	wait float64
	// Bytes of write-ahead log in Earshot's database for one event with its delivery.
	walBytes float64
}

// fitted are the rates that determine the costs. The simulation must predict the other rates and
// the burst.
var fitted = []int{25, 100, 200, 400}

func load(file string) ([]measurement.Cost, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "read the measured costs")
	}
	var all []measurement.Cost
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, errors.Wrapf(err, "read %s", file)
	}
	return all, nil
}

// fit splits the cost of an event into its parts, based on the number of workflows for each event.
// The burst without deliveries gives the cost of a request.
func fit(all []measurement.Cost) (costs, error) {
	var c costs
	idle, ok := find(all, func(m measurement.Cost) bool { return m.Idle })
	alone, found := find(all, func(m measurement.Cost) bool { return m.Rate == 0 && !m.Idle && !m.Delivered })
	if !ok || !found {
		return c, errors.New("the costs have no idle stack, or no burst without deliveries: make bench ARGS=-costs")
	}
	c.idle = part{idle.Service, idle.Postgres, idle.Temporal, 0}
	c.request = part{alone.Service, alone.Postgres, 0, alone.Client}
	steady := slices.DeleteFunc(slices.Clone(all), func(m measurement.Cost) bool { return !slices.Contains(fitted, m.Rate) })
	if len(steady) < 2 {
		return c, errors.New("the costs have no two of the rates that they are fitted to")
	}
	for _, process := range []struct {
		of                       func(c measurement.CPU) float64
		idle, request            float64
		delivery, workflow, wake *float64
	}{
		{func(c measurement.CPU) float64 { return c.Service }, c.idle.service, c.request.service, &c.delivery.service, &c.workflow.service, &c.wake.service},
		{func(c measurement.CPU) float64 { return c.Postgres }, c.idle.postgres, c.request.postgres, &c.delivery.postgres, &c.workflow.postgres, &c.wake.postgres},
		{func(c measurement.CPU) float64 { return c.Temporal }, c.idle.temporal, 0, &c.delivery.temporal, &c.workflow.temporal, &c.wake.temporal},
		{func(c measurement.CPU) float64 { return c.Client }, 0, c.request.client, &c.delivery.client, &c.workflow.client, &c.wake.client},
	} {
		// The idle cost of a second is divided among the events of that second.
		var each [][3]float64
		var took []float64
		for _, m := range steady {
			idle := max(0, 1-m.Total()*float64(m.Rate)/1000/oneMachineCores)
			each = append(each, [3]float64{1, m.Workflows, idle})
			took = append(took, process.of(m.CPU)-process.idle/float64(m.Rate)-process.request)
		}
		parts := positive(each, took)
		*process.delivery, *process.workflow, *process.wake = parts[0], parts[1], parts[2]
	}
	burst, _ := find(all, func(m measurement.Cost) bool { return m.Rate == 0 && m.Delivered })
	c.walBytes = burst.WALBytes
	// The lowest rate has no queues. The part of its latency that exceeds the processor time is
	// waiting.
	first := slices.MinFunc(steady, func(a, b measurement.Cost) int { return a.Rate - b.Rate })
	c.wait = max(0, first.P50-oneMachine(c).steady(float64(first.Rate)).p50)
	return c, nil
}

func find(all []measurement.Cost, is func(measurement.Cost) bool) (measurement.Cost, bool) {
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return measurement.Cost{}, false
	}
	return all[i], true
}

// positive returns the non-negative coefficients with which the columns of x best approximate y. It
// improves one coefficient at a time (coordinate descent).
func positive(x [][3]float64, y []float64) (found [3]float64) {
	const rounds = 100_000 // a few thousand rounds suffice for columns as similar as these
	missed := slices.Clone(y)
	for range rounds {
		for c := range found {
			var along, length float64
			for i := range x {
				along += x[i][c] * missed[i]
				length += x[i][c] * x[i][c]
			}
			next := max(0, found[c]+along/length)
			for i := range x {
				missed[i] -= x[i][c] * (next - found[c])
			}
			found[c] = next
		}
	}
	return found
}
