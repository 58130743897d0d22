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
	// retryPause lies before a write is asked for again.
	retryPause = 50 * time.Millisecond
	// mostPending is how many deliveries may wait before the load does: some seconds of
	// work. More would hide what a kill does, less would stop the load at each kill. With
	// its database in a Postgres that waits for the disk, Temporal does a fifth in that time.
	mostPending           = 1500
	mostPendingProduction = 300
	// countEvery is how often what is pending is counted.
	countEvery = 500 * time.Millisecond
	// One write of so many goes to the tenant whose receivers are slow, flaky or dead,
	// and has four deliveries.
	mixedShare = 10
)

// load are writes from several connections, each repeated until it is acknowledged.
type load struct {
	run  *run
	most int64 // pending deliveries
	next atomic.Int64
	// base is the number before the first of the events that were asked for.
	base    atomic.Int64
	pending atomic.Int64
	// repeated counts requests that were asked again.
	repeated atomic.Int64

	mu    sync.Mutex
	acked []check.Write
	// failure is why the last of the repeated requests failed.
	failure error
}

// acknowledged are the writes so far that the API answered for.
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

// until writes so many events, or until the context ends if there are none given,
// which is no error then.
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

// more writes so many events of one tenant.
func (l *load) more(ctx context.Context, t *tenant, events int) error {
	for range events {
		l.insist(ctx, t, int(l.next.Add(1)))
	}
	return ctx.Err()
}

// insist makes a write until it is acknowledged.
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
			return // the load was ended, not the request
		}
		l.failed(err)
		_ = pause(ctx, retryPause)
	}
}

// failed counts a request that has to be asked again.
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

// count keeps the number of pending deliveries; while the database is away it stays.
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

// number asks the database for one.
func (r *run) number(ctx context.Context, question string, args ...any) (n int, err error) {
	return n, r.ask(ctx, []any{&n}, question, args...)
}

// ask takes in the one row that the database answers, past every link that is cut.
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
