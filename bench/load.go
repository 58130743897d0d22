package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// latencies collects from many goroutines.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

// quantile is the smallest latency that the share q of all doesn't exceed.
func (l *latencies) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[max(0, min(len(l.all)-1, int(q*float64(len(l.all))+0.5)-1))]
}

// operation is one of a load, by its number.
type operation func(ctx context.Context, i int) error

// burst does an operation n times, at once over so many goroutines. It returns
// the first error.
func burst(ctx context.Context, n, goroutines int, do operation) (*latencies, error) {
	return closedLoop(ctx, time.Hour, n, goroutines, do)
}

// closedLoop does an operation over and over for the period, n times at most, and notes how
// long each took.
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

// openLoop starts an operation so many times a second, whether or not the ones before it are
// done, and waits for all: a slow system can't slow the load down. Each is told when it was due,
// and took the time since then: a load that falls behind doesn't hide what its users wait.
func openLoop(
	ctx context.Context, perSecond int, period time.Duration, do func(ctx context.Context, i int, due time.Time) error,
) (*latencies, error) {
	var times latencies
	began := time.Now()
	var next atomic.Int64
	// One goroutine each, so that none waits for another.
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

// arrivals is how many operations an open loop starts.
func arrivals(perSecond int, period time.Duration) int {
	return max(1, int(float64(perSecond)*period.Seconds()))
}

// together runs fn in so many goroutines; the first error ends all.
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
