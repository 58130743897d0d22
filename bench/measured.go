package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/bench/measurement"
)

// measured is the outcome of one run.
type measured struct {
	// PerSecond counts finished operations. P50 and P99 are latencies of one operation.
	PerSecond float64       `json:"perSecond"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	// CPU is the processor time for one operation.
	CPU measurement.CPU `json:"cpu"`
	// The bytes of write-ahead log and the transactions in Earshot's database, for one operation.
	WALBytes float64 `json:"walBytes"`
	Commits  float64 `json:"commits"`
	// Workflows is the number of delivery workflows for one operation.
	Workflows float64 `json:"workflows,omitempty"`
}

// timed runs a load, which returns the latency of each operation. It divides the resources that all
// processes used during the load by the number of operations.
func (s *stack) timed(ctx context.Context, load func(ctx context.Context) (*latencies, error)) (m measured, err error) {
	if err := s.quiet(ctx); err != nil {
		return m, err
	}
	before, err := s.usage(ctx)
	if err != nil {
		return m, err
	}
	began := time.Now()
	times, err := load(ctx)
	took := time.Since(began)
	if err != nil {
		return m, err
	}
	after, err := s.usage(ctx)
	if err != nil {
		return m, err
	}
	s.meters.notePostgres(ctx)
	n := len(times.all)
	if n == 0 {
		return m, errors.New("nothing was done in time")
	}
	m.PerSecond = float64(n) / took.Seconds()
	m.P50, m.P99 = times.quantile(0.5), times.quantile(0.99)
	m.CPU, m.WALBytes, m.Commits = after.since(before, n)
	return m, nil
}

// quiet waits a few seconds at most until the work that the previous run left behind is done.
func (s *stack) quiet(ctx context.Context) error {
	const (
		look = 100 * time.Millisecond
		// The share of one processor. Temporal's dev server takes 3 % when it is idle.
		idle = 0.15
	)
	for range 20 {
		before, err := s.meters.cpu(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
		after, err := s.meters.cpu(ctx)
		if err != nil {
			return err
		}
		// The only work of this program here is to ask.
		before.Client, after.Client = 0, 0
		if (after.Total()-before.Total())/milliseconds(time.Since(began)) < idle {
			return nil
		}
	}
	return nil
}

// usage is the total consumption of all processes so far.
type usage struct {
	cpu          measurement.CPU
	wal, commits float64
}

func (s *stack) usage(ctx context.Context) (u usage, err error) {
	if u.cpu, err = s.meters.cpu(ctx); err != nil {
		return u, err
	}
	err = s.pool.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
		(SELECT sum(xact_commit)::float8 FROM pg_stat_database WHERE datname = current_database())`).Scan(&u.wal, &u.commits)
	if err != nil {
		return u, errors.Wrap(err, "read the database's counters")
	}
	return u, nil
}

func (u usage) since(before usage, n int) (cpu measurement.CPU, wal, commits float64) {
	each := func(before, after float64) float64 { return (after - before) / float64(n) }
	return measurement.CPU{
		Service: each(before.cpu.Service, u.cpu.Service), Postgres: each(before.cpu.Postgres, u.cpu.Postgres),
		Temporal: each(before.cpu.Temporal, u.cpu.Temporal), Client: each(before.cpu.Client, u.cpu.Client),
	}, each(before.wal, u.wal), each(before.commits, u.commits)
}

func bySpeed(a, b measured) int { return cmp.Compare(a.PerSecond, b.PerSecond) }

// median returns the run with the median speed.
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
		return fmt.Sprintf("%.1f ms", milliseconds(d))
	}
}
