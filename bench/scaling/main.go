// Command scaling calculates the number of processors that each part needs at a rate of events. It
// uses the costs that `make bench ARGS=-costs` measured on one machine. First it shows that its
// simulation reproduces the figures of that machine. docs/scaling.md has the conclusions.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"

	"earshot/bench/measurement"
)

// The burst of make bench.
const (
	burstEvents      = 5000
	burstConnections = 32
)

func main() {
	file := flag.String("costs", "bench/scaling/costs.json", "file with the output of make bench ARGS=-costs")
	flag.Parse()
	all, err := load(*file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
	c, err := fit(all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
	printCosts(c)
	printComparison(all, c)
	printSizes(c)
}

func printCosts(c costs) {
	fmt.Printf("%-32s %9s %9s %9s %9s\n", "milliseconds of processor time", "service", "postgres", "temporal", "client")
	for _, row := range []struct {
		name string
		part part
	}{
		{"a request with its event", c.request}, {"a delivery", c.delivery}, {"a workflow", c.workflow}, {"an event on idle processors more", c.wake}, {"a second without load", c.idle},
	} {
		fmt.Printf("%-32s %9.2f %9.2f %9.2f %9.2f\n", row.name, row.part.service, row.part.postgres, row.part.temporal, row.part.client)
	}
	fmt.Printf("waiting, for the disk above all: %.1f ms an event; %.1f kB of log\n\n", c.wait, c.walBytes/1000)
}

// comparison is a measured figure and its simulated value.
type comparison struct {
	name                string
	measured, simulated float64
	// fitted marks a figure that determined the costs, and so proves nothing.
	fitted bool
}

func compare(all []measurement.Cost, c costs) []comparison {
	var list []comparison
	for _, m := range all {
		switch {
		case !m.Delivered:
		case m.Rate == 0:
			o := oneMachine(c).burst(burstEvents, burstConnections)
			list = append(list, comparison{"burst: events a second", m.PerSecond, o.perSecond, false})
		default:
			o := oneMachine(c).steady(float64(m.Rate))
			known := slices.Contains(fitted, m.Rate)
			list = append(list,
				comparison{fmt.Sprintf("%d/s: processors", m.Rate), m.Total() * float64(m.Rate) / 1000, o.busy[0] * 2, known},
				comparison{fmt.Sprintf("%d/s: workflows an event", m.Rate), m.Workflows, o.workflows, false},
				comparison{fmt.Sprintf("%d/s: p50 ms", m.Rate), m.P50, o.p50, m.Rate == fitted[0]})
		}
	}
	return list
}

func printComparison(all []measurement.Cost, c costs) {
	fmt.Printf("%-28s %9s %9s %7s\n", "one machine, two processors", "measured", "simulated", "ratio")
	for _, row := range compare(all, c) {
		note := ""
		if row.fitted {
			note = "  fitted"
		}
		fmt.Printf("%-28s %9.2f %9.2f %7.2f%s\n", row.name, row.measured, row.simulated, row.simulated/row.measured, note)
	}
	fmt.Println()
}

// The components of a deployment.
const (
	// The highest mean utilisation of the processors, which leaves room for bursts.
	utilisation = 0.6
	// The processors of one API or worker process. A larger API process gathers larger groups, so
	// there are fewer workflows.
	processCores = 8
	// The number of busy event types. Organizations with few waiting deliveries share a group.
	eventTypes = 5
	// The largest reasonable Postgres, in processors. Beyond it, the deployment is split into
	// cells.
	largestPostgres = 64
	// A history shard runs its updates one at a time. A workflow has three updates, each a
	// transaction of about 2 ms. If a shard is busy for more than a fifth of the time, workflows
	// wait for each other.
	shardPerWorkflow = 3 * 2.0
	shardBusy        = 0.2
)

// size describes a deployment for a rate.
type size struct {
	rate                             float64
	apis, workers, cells             int
	group, postgres, temporal, logMB float64
	shards                           int
}

func sizeFor(c costs, rate float64) size {
	s := size{rate: rate}
	idle := 1 - utilisation
	s.apis = max(2, processes(rate*(c.request.service+idle*c.wake.service/2)))
	perStream := rate / float64(s.apis) / eventTypes
	s.group = 1
	if perStream > singleRate {
		s.group = min(groupMax, max(1, perStream*busyInterval/1000))
	}
	workflows := rate / s.group
	s.workers = max(2, processes(rate*(c.delivery.service+idle*c.wake.service/2)+workflows*c.workflow.service))
	s.postgres = (rate*(c.request.postgres+c.delivery.postgres+idle*c.wake.postgres) + workflows*c.workflow.postgres) / 1000 / utilisation
	s.temporal = (rate*(c.delivery.temporal+idle*c.wake.temporal) + workflows*c.workflow.temporal) / 1000 / utilisation
	s.cells = max(1, int(math.Ceil(s.postgres/largestPostgres)))
	s.shards = 1
	for float64(s.shards) < workflows/float64(s.cells)*shardPerWorkflow/1000/shardBusy {
		s.shards *= 2
	}
	s.logMB = rate * c.walBytes / 1e6
	return s
}

func processes(milliseconds float64) int {
	return int(math.Ceil(milliseconds / 1000 / processCores / utilisation))
}

// machines returns the machines of one cell.
func (s size) machines(c costs) machines {
	cells := float64(s.cells)
	tiers := []int{s.apis * processCores, s.workers * processCores, int(math.Ceil(s.postgres)), int(math.Ceil(s.temporal)), math.MaxInt32}
	for i := range tiers[:4] {
		tiers[i] = int(math.Ceil(float64(tiers[i]) / cells))
	}
	at := func(i int) func(*world) *tier { return func(w *world) *tier { return &w.tiers[i] } }
	return machines{
		costs: c, dispatchers: max(1, s.apis/s.cells), streams: eventTypes, tiers: tiers,
		api: at(0), worker: at(1), postgres: at(2), temporal: at(3), load: at(4),
	}
}

func printSizes(c costs) {
	fmt.Printf("at %.0f%% of the processors, API and workers of %d each\n", utilisation*100, processCores)
	fmt.Printf("%9s %5s %8s %6s %10s %10s %6s %7s %9s %8s %8s\n", "events/s", "APIs", "workers", "group", "Temporal", "Postgres", "cells", "shards", "log MB/s", "p50 ms", "p99 ms")
	for _, rate := range []float64{100, 1000, 10_000, 100_000} {
		s := sizeFor(c, rate)
		o := s.machines(c).steady(rate / float64(s.cells))
		fmt.Printf("%9.0f %5d %8d %6.1f %10.1f %10.1f %6d %7d %9.1f %8.1f %8.1f\n", rate, s.apis, s.workers, s.group, s.temporal, s.postgres, s.cells, s.shards, s.logMB, o.p50, o.p99)
	}
	fmt.Println("Temporal and Postgres in processors, of all cells together; shards of each cell")
}
