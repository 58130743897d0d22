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

// burst does an operation n times, at once over so many goroutines. It returns
// the first error.
func burst(ctx context.Context, n, goroutines int, do func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	return together(ctx, goroutines, func(ctx context.Context) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n || ctx.Err() != nil {
				return ctx.Err()
			}
			if err := do(ctx, i); err != nil {
				return err
			}
		}
	})
}

// closedLoop does an operation over and over for the period and measures it.
func closedLoop(ctx context.Context, period time.Duration, goroutines int, do func(ctx context.Context, i int) error) (measured, error) {
	var (
		times latencies
		next  atomic.Int64
		cpu   = startCPU()
		began = time.Now()
	)
	err := together(ctx, goroutines, func(ctx context.Context) error {
		for time.Since(began) < period && ctx.Err() == nil {
			start := time.Now()
			if err := do(ctx, int(next.Add(1))-1); err != nil {
				return err
			}
			times.add(time.Since(start))
		}
		return ctx.Err()
	})
	n := len(times.all)
	return measured{
		PerSecond: float64(n) / time.Since(began).Seconds(),
		P50:       times.quantile(0.5), P99: times.quantile(0.99), CPU: cpu.perOperation(n),
	}, err
}

// steady starts an operation so many times a second, whether or not the ones
// before it are done, and waits for all. A slow system can't slow the load down.
func steady(ctx context.Context, perSecond int, period time.Duration, do func(ctx context.Context, i int) error) error {
	n := int(float64(perSecond) * period.Seconds())
	began := time.Now()
	var next atomic.Int64
	// One goroutine each, so that none waits for another.
	return together(ctx, n, func(ctx context.Context) error {
		i := int(next.Add(1)) - 1
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond)))):
			return do(ctx, i)
		}
	})
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
