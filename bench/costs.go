package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	gopsnet "github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// cost is what one event took, on its way from the REST call to the receiver's answer.
// bench/scaling reckons with it.
type cost struct {
	// Rate is 0 for a burst, as fast as it goes, and for the idle stack.
	Rate int `json:"rate"`
	// Idle is the stack without any load: what a second takes, not an event.
	Idle      bool    `json:"idle"`
	Delivered bool    `json:"delivered"`
	PerSecond float64 `json:"perSecond"`
	// Milliseconds, of the middle and the slowest arrivals.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Workflows of deliver_webhooks for one event: 1/60 at best.
	Workflows float64 `json:"workflows"`
	// Milliseconds of processor time. Client is the load with its receiver.
	Service  float64 `json:"service"`
	Postgres float64 `json:"postgres"`
	Temporal float64 `json:"temporal"`
	Client   float64 `json:"client"`
	// Of our database: bytes of its log, and transactions.
	WALBytes float64 `json:"walBytes"`
	Commits  float64 `json:"commits"`
}

// costRates are from one workflow an event to full groups; bursts, the first of which makes no
// delivery, show what is left when everything is busy.
var costRates = []int{25, 50, 100, 200, 300, 400}

func (s *stack) measureCosts(ctx context.Context, o options) error {
	var all []cost
	for _, c := range s.costSubjects(o) {
		var rounds []cost
		for range o.runs {
			fmt.Fprintf(os.Stderr, "rate %d, delivered %t\n", c.cost.Rate, c.cost.Delivered)
			one, err := s.costOf(ctx, c.cost, c.events, c.run)
			if err != nil {
				return err
			}
			rounds = append(rounds, one)
		}
		slices.SortFunc(rounds, func(a, b cost) int { return cmp.Compare(a.total(), b.total()) })
		all = append(all, rounds[len(rounds)/2])
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return errors.Wrap(err, "print")
	}
	return nil
}

func (c cost) total() float64 { return c.Service + c.Postgres + c.Temporal + c.Client }

type costSubject struct {
	cost   cost
	events int
	run    func(ctx context.Context) (measured, error)
}

func (s *stack) costSubjects(o options) []costSubject {
	all := []costSubject{
		{cost{Idle: true}, int(o.period.Seconds()), func(ctx context.Context) (measured, error) {
			select {
			case <-ctx.Done():
				return measured{}, ctx.Err()
			case <-time.After(o.period):
				return measured{}, nil
			}
		}},
		{cost{}, o.posts, func(ctx context.Context) (measured, error) {
			began := time.Now()
			err := burst(ctx, o.posts, o.connections, s.post)
			return measured{PerSecond: float64(o.posts) / time.Since(began).Seconds()}, err
		}},
		{cost{Delivered: true}, o.posts, func(ctx context.Context) (measured, error) {
			return s.delivered(ctx, o.posts, func(ctx context.Context, do func(context.Context, int) error) error {
				return burst(ctx, o.posts, o.connections, do)
			})
		}},
	}
	for _, rate := range costRates {
		n := int(float64(rate) * o.period.Seconds())
		all = append(all, costSubject{cost{Rate: rate, Delivered: true}, n, func(ctx context.Context) (measured, error) {
			return s.delivered(ctx, n, func(ctx context.Context, do func(context.Context, int) error) error {
				return steady(ctx, rate, o.period, do)
			})
		}})
	}
	return all
}

// costOf runs the load and shares what everything took among its events.
func (s *stack) costOf(ctx context.Context, c cost, events int, run func(ctx context.Context) (measured, error)) (cost, error) {
	before, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	m, err := run(ctx)
	if err != nil {
		return c, err
	}
	after, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	each := func(before, after float64) float64 { return (after - before) / float64(events) }
	c.PerSecond, c.P50, c.P99 = m.PerSecond, m.P50.Seconds()*1000, m.P99.Seconds()*1000
	c.Service, c.Postgres = each(before.service, after.service), each(before.postgres, after.postgres)
	c.Temporal, c.Client = each(before.temporal, after.temporal), each(before.client, after.client)
	c.WALBytes, c.Commits = each(before.wal, after.wal), each(before.commits, after.commits)
	c.Workflows = float64(m.workflows) / float64(events)
	return c, nil
}

// usage is what everything has taken so far: milliseconds, bytes, transactions.
type usage struct{ service, postgres, temporal, client, wal, commits float64 }

func (s *stack) usage(ctx context.Context) (u usage, err error) {
	for _, p := range []struct {
		into     *float64
		url      string
		children bool
	}{
		// `make up` has the servers for children of the service. Those of Postgres do its work.
		{&u.service, os.Getenv("EARSHOT_BASE_URL"), false},
		{&u.postgres, os.Getenv("DATABASE_URL"), true},
		{&u.temporal, "grpc://" + os.Getenv("TEMPORAL_ADDRESS"), false},
	} {
		at, err := url.Parse(p.url)
		if err != nil {
			return u, errors.Wrap(err, "read an address of the stack")
		}
		if *p.into, err = cpuOfListener(ctx, at.Port(), p.children); err != nil {
			return u, err
		}
	}
	u.client = ownCPU().Seconds() * 1000
	err = s.pool.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
		(SELECT sum(xact_commit)::float8 FROM pg_stat_database WHERE datname = current_database())`).Scan(&u.wal, &u.commits)
	if err != nil {
		return u, errors.Wrap(err, "read the database's counters")
	}
	return u, nil
}

// cpuOfListener is the processor time in milliseconds of the process that listens on the port,
// and of its children if they count.
func cpuOfListener(ctx context.Context, port string, children bool) (float64, error) {
	number, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return 0, errors.Wrap(err, "read a port of the stack")
	}
	sockets, err := gopsnet.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return 0, errors.Wrap(err, "list who listens")
	}
	for _, c := range sockets {
		if c.Status != "LISTEN" || c.Laddr.Port != uint32(number) || c.Pid == 0 {
			continue
		}
		p, err := process.NewProcessWithContext(ctx, c.Pid)
		if err != nil {
			return 0, errors.Wrap(err, "find a process of the stack")
		}
		return cpuOf(ctx, p, children)
	}
	return 0, errors.Errorf("nobody whom we may look at listens on port %s of this machine", port)
}

func cpuOf(ctx context.Context, p *process.Process, andChildren bool) (float64, error) {
	times, err := p.TimesWithContext(ctx)
	if err != nil {
		return 0, errors.Wrap(err, "read a process's times")
	}
	sum := (times.User + times.System) * 1000
	if !andChildren {
		return sum, nil
	}
	// A process without children is an error of this library.
	children, _ := p.ChildrenWithContext(ctx)
	for _, child := range children {
		// It may have ended since.
		if more, err := cpuOf(ctx, child, true); err == nil {
			sum += more
		}
	}
	return sum, nil
}
