package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
)

func TestAQuantileIsTheLatencyThatItsShareDoesNotExceed(t *testing.T) {
	t.Parallel()
	var l latencies
	require.Zero(t, l.quantile(0.5))
	for i := range 100 {
		l.add(time.Duration(100-i) * time.Millisecond)
	}
	require.Equal(t, 50*time.Millisecond, l.quantile(0.5))
	require.Equal(t, 99*time.Millisecond, l.quantile(0.99))
	require.Equal(t, 100*time.Millisecond, l.quantile(1))
	require.Equal(t, time.Millisecond, l.quantile(0))
}

func TestABurstDoesEachOperationOnce(t *testing.T) {
	t.Parallel()
	done := make(chan int, 1000)
	times, err := burst(t.Context(), 1000, 7, func(_ context.Context, i int) error {
		done <- i
		return nil
	})
	require.NoError(t, err)
	require.Len(t, times.all, 1000)
	close(done)
	seen := map[int]bool{}
	for i := range done {
		require.False(t, seen[i])
		seen[i] = true
	}
	require.Len(t, seen, 1000)
}

func TestTheFirstErrorEndsALoad(t *testing.T) {
	t.Parallel()
	fault := errors.New("refused")
	_, err := closedLoop(t.Context(), time.Hour, 1_000_000, 4, func(_ context.Context, i int) error {
		if i == 10 {
			return fault
		}
		return nil
	})
	require.ErrorIs(t, err, fault)
}

func TestAnOpenLoopDoesNotWaitForItsOperations(t *testing.T) {
	t.Parallel()
	// Each operation waits for all the others, so a load that waited for one of them would never
	// end.
	const n = 20
	waiting := make(chan struct{}, n)
	all := make(chan struct{})
	_, err := openLoop(t.Context(), 1000, n*time.Millisecond, func(ctx context.Context, _ int, _ time.Time) error {
		if waiting <- struct{}{}; len(waiting) == n {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	require.NoError(t, err)
}

func TestAnOpenLoopCountsFromWhenARequestWasDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		// Each operation takes twice the interval between two operations. The due times stay the
		// same.
		times, err := openLoop(t.Context(), 2, time.Second, func(_ context.Context, i int, due time.Time) error {
			require.Equal(t, began.Add(time.Duration(i)*500*time.Millisecond), due)
			time.Sleep(time.Second)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Second, time.Second}, times.all)
	})
}

func TestTheMedianIsTheRunInTheMiddle(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 20, median([]measured{{PerSecond: 30}, {PerSecond: 10}, {PerSecond: 20}}).PerSecond, 0)
}
