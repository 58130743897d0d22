package main

import (
	"encoding/json"
	"math"
	"os"
	"slices"

	"github.com/go-faster/errors"

	"earshot/bench/measurement"
)

// part is what one thing takes of each process, in milliseconds of processor time.
type part struct{ service, postgres, temporal, client float64 }

// costs are what the simulation reckons with.
type costs struct {
	// request is a post with its event; delivery is one more attempt of a run, workflow is the
	// run around it; idle is what a second takes without any load.
	request, delivery, workflow, idle part
	// wait in milliseconds is what an arrival takes beside processor time: the disk, above all.
	wait float64
	// Bytes of our database's log for one event with its delivery.
	walBytes float64
}

// fitted are the rates that costs are taken from. The others, and the burst, are what the
// simulation has to come to by itself.
var fitted = []int{25, 100, 400}

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

// fit takes what an event took apart: it goes by how many workflows it had. What a request takes
// is known from the burst that nobody subscribes to.
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
		of                 func(m measurement.Cost) float64
		idle, request      float64
		delivery, workflow *float64
	}{
		{func(m measurement.Cost) float64 { return m.Service }, c.idle.service, c.request.service, &c.delivery.service, &c.workflow.service},
		{func(m measurement.Cost) float64 { return m.Postgres }, c.idle.postgres, c.request.postgres, &c.delivery.postgres, &c.workflow.postgres},
		{func(m measurement.Cost) float64 { return m.Temporal }, c.idle.temporal, 0, &c.delivery.temporal, &c.workflow.temporal},
		{func(m measurement.Cost) float64 { return m.Client }, 0, c.request.client, &c.delivery.client, &c.workflow.client},
	} {
		// Of a second's idle time each of its events has a part.
		base, each := line(steady, func(m measurement.Cost) float64 { return process.of(m) - process.idle/float64(m.Rate) })
		*process.delivery, *process.workflow = max(0, base-process.request), max(0, each)
	}
	burst, _ := find(all, func(m measurement.Cost) bool { return m.Rate == 0 && m.Delivered })
	c.walBytes = burst.WALBytes
	// The slowest of the rates has no queues: what its arrivals take longer than their
	// processor time is waiting.
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

// line is the least-squares line through a cost over workflows an event.
func line(all []measurement.Cost, of func(measurement.Cost) float64) (base, each float64) {
	x, y := average(all, func(m measurement.Cost) float64 { return m.Workflows }), average(all, of)
	var xy, xx float64
	for _, m := range all {
		xy += (m.Workflows - x) * (of(m) - y)
		xx += (m.Workflows - x) * (m.Workflows - x)
	}
	if each = xy / xx; math.IsNaN(each) {
		each = 0
	}
	return y - each*x, each
}

func average(all []measurement.Cost, of func(measurement.Cost) float64) float64 {
	sum := 0.0
	for _, m := range all {
		sum += of(m)
	}
	return sum / float64(len(all))
}
