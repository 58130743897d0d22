package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// latencies collects latencies from many goroutines.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

// quantile returns the smallest latency that a share q of all operations doesn't exceed.
func (l *latencies) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[max(0, min(len(l.all)-1, int(q*float64(len(l.all))+0.5)-1))]
}

// operation is one operation of a load. The argument i is its number.
type operation func(ctx context.Context, i int) error

// burst runs an operation n times as fast as possible, in the given number of goroutines. It
// returns the first error.
func burst(ctx context.Context, n, goroutines int, do operation) (*latencies, error) {
	return closedLoop(ctx, time.Hour, n, goroutines, do)
}

// closedLoop repeats an operation for the period, at most n times, and records each latency. Each
// goroutine waits for one operation before it starts the next.
func closedLoop(ctx context.Context, period time.Duration, n, goroutines int, do operation) (*latencies, error) {
	var (
		times latencies
		next  atomic.Int64
		began = time.Now()
	)
	err := together(ctx, goroutines, func(ctx context.Context) error {
		for time.Since(began) < period && ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			start := time.Now()
			if err := do(ctx, i); err != nil {
				return err
			}
			times.add(time.Since(start))
		}
		return ctx.Err()
	})
	return &times, err
}

// openLoop starts operations at a fixed rate and then waits for all of them. It never waits for
// earlier operations, so a slow system can't slow the load down. Latency counts from the time when
// an operation was due, so a delayed start counts too.
func openLoop(
	ctx context.Context, perSecond int, period time.Duration, do func(ctx context.Context, i int, due time.Time) error,
) (*latencies, error) {
	var times latencies
	began := time.Now()
	var next atomic.Int64
	// Each operation has its own goroutine, so that none waits for another.
	err := together(ctx, arrivals(perSecond, period), func(ctx context.Context) error {
		i := int(next.Add(1)) - 1
		due := began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(due)):
		}
		if err := do(ctx, i, due); err != nil {
			return err
		}
		times.add(time.Since(due))
		return nil
	})
	return &times, err
}

// arrivals returns the number of operations that an open loop starts.
func arrivals(perSecond int, period time.Duration) int {
	return max(1, int(float64(perSecond)*period.Seconds()))
}

// together runs fn in the given number of goroutines. The first error cancels all of them.
func together(ctx context.Context, goroutines int, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			if err := fn(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
