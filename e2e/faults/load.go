package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/e2e/faults/check"
)

const (
	// retryPause is the pause before a write is repeated.
	retryPause = 50 * time.Millisecond
	// mostPending is how many deliveries may be pending before the load pauses: some seconds of
	// work. A higher limit would hide the effect of a kill, and a lower one would stop the load at
	// each kill. In production, Temporal's Postgres waits for the disk, and Temporal does a fifth of
	// the work in the same time.
	mostPending           = 1500
	mostPendingProduction = 300
	// countEvery is the interval between counts of the pending deliveries.
	countEvery = 500 * time.Millisecond
	// mixedShare: one write in ten goes to the tenant with slow, flaky and dead receivers, and has
	// four deliveries.
	mixedShare = 10
)

// load writes from several connections and repeats each write until it is acknowledged.
type load struct {
	run  *run
	most int64 // pending deliveries
	next atomic.Int64
	// base is the number before the first event of the present call of until.
	base    atomic.Int64
	pending atomic.Int64
	// repeated counts requests that were sent again.
	repeated atomic.Int64

	mu    sync.Mutex
	acked []check.Write
	// failure is the error of the last repeated request.
	failure error
}

// acknowledged returns the writes that the API has acknowledged so far.
func (l *load) acknowledged() []check.Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked[:len(l.acked):len(l.acked)]
}

func (l *load) acknowledge(of written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, check.Write{Subject: of.subject, Type: of.event, At: time.Now()})
}

// until writes the given number of events. With 0 it writes until the context ends, and returns no
// error then.
func (l *load) until(ctx context.Context, events int) error {
	var all sync.WaitGroup
	counting, stop := context.WithCancel(ctx)
	defer stop()
	go l.count(counting)
	l.base.Store(l.next.Load())
	last := l.base.Load() + int64(events)
	for range l.run.options.connections {
		all.Go(func() {
			for ctx.Err() == nil {
				i := l.next.Add(1)
				if events > 0 && i > last {
					return
				}
				l.insist(ctx, l.tenantOf(i), int(i))
			}
		})
	}
	all.Wait()
	if events > 0 {
		return ctx.Err()
	}
	return nil
}

func (l *load) tenantOf(i int64) *tenant {
	if i%mixedShare == 0 {
		return l.run.mixed
	}
	return l.run.plain
}

// more writes the given number of events of one tenant.
func (l *load) more(ctx context.Context, t *tenant, events int) error {
	for range events {
		l.insist(ctx, t, int(l.next.Add(1)))
	}
	return ctx.Err()
}

// insist repeats a write until it is acknowledged.
func (l *load) insist(ctx context.Context, t *tenant, i int) {
	wanted := t.task(i)
	for ctx.Err() == nil {
		if l.pending.Load() > l.most {
			_ = pause(ctx, retryPause)
			continue
		}
		made, err := t.write(ctx, wanted)
		if err == nil {
			l.acknowledge(made)
			return
		}
		if ctx.Err() != nil {
			return // The load was ended; the request didn't fail.
		}
		l.failed(err)
		_ = pause(ctx, retryPause)
	}
}

// failed counts a request that has to be sent again.
func (l *load) failed(err error) {
	l.repeated.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

func (l *load) lastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// count updates the number of pending deliveries. While the database is away, the number stays the
// same.
func (l *load) count(ctx context.Context) {
	for pause(ctx, countEvery) == nil {
		if n, err := l.run.pending(ctx); err == nil {
			l.pending.Store(int64(n))
		}
	}
}

// pending counts the deliveries that haven't ended.
func (r *run) pending(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return check.Pending(ctx, r.stack.direct)
}

// number runs a query whose result is one number.
func (r *run) number(ctx context.Context, question string, args ...any) (n int, err error) {
	return n, r.ask(ctx, []any{&n}, question, args...)
}

// ask scans the one row of a query. It connects directly, so a cut link doesn't affect it.
func (r *run) ask(ctx context.Context, into []any, question string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.stack.direct)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, question, args...).Scan(into...); err != nil {
		return errors.Wrap(err, "ask the database")
	}
	return nil
}
