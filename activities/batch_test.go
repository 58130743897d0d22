package activities

import (
	"context"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
)

// gated is a batcher whose batches wait for a signal and are noted.
func gated(limit int, fail error) (b *batcher[int, int], entered chan []int, gate chan struct{}) {
	entered, gate = make(chan []int), make(chan struct{})
	b = &batcher[int, int]{max: limit, run: func(_ context.Context, in []int) ([]int, error) {
		entered <- in
		<-gate
		out := make([]int, len(in))
		for i, n := range in {
			out[i] = 10 * n
		}
		return out, fail
	}}
	return b, entered, gate
}

// join queues calls in the background and returns when all are in the queue.
func join(t *testing.T, b *batcher[int, int], calls ...int) (answers map[int]answer[int], done *sync.WaitGroup) {
	t.Helper()
	answers, done = map[int]answer[int]{}, &sync.WaitGroup{}
	var mu sync.Mutex
	for _, n := range calls {
		b.mu.Lock()
		before := len(b.waiting)
		b.mu.Unlock()
		done.Go(func() {
			out, err := b.do(t.Context(), n)
			mu.Lock()
			defer mu.Unlock()
			answers[n] = answer[int]{out, err}
		})
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.waiting) > before
		}, waitFor, tick)
	}
	return answers, done
}

func TestCallsThatComeDuringABatchGoTogetherInTheNext(t *testing.T) {
	t.Parallel()
	b, entered, gate := gated(3, nil)
	first := make(chan answer[int])
	go func() {
		out, err := b.do(context.Background(), 1)
		first <- answer[int]{out, err}
	}()
	require.Equal(t, []int{1}, <-entered)
	answers, done := join(t, b, 2, 3, 4, 5)
	gate <- struct{}{}
	require.Equal(t, answer[int]{out: 10}, <-first)
	require.Equal(t, []int{2, 3, 4}, <-entered, "at most max calls a batch")
	gate <- struct{}{}
	require.Equal(t, []int{5}, <-entered)
	gate <- struct{}{}
	done.Wait()
	require.Equal(t, map[int]answer[int]{2: {out: 20}, 3: {out: 30}, 4: {out: 40}, 5: {out: 50}}, answers)
}

func TestABatchThatFailsFailsForEachOfItsCalls(t *testing.T) {
	t.Parallel()
	fault := errors.New("the database is away")
	b, entered, gate := gated(10, fault)
	go func() { _, _ = b.do(context.Background(), 1) }()
	<-entered
	answers, done := join(t, b, 2, 3)
	close(gate)
	<-entered
	done.Wait()
	require.ErrorIs(t, answers[2].err, fault)
	require.ErrorIs(t, answers[3].err, fault)
}

func TestACallerThatLeavesHoldsTheBatchUpForNobody(t *testing.T) {
	t.Parallel()
	b, entered, gate := gated(10, nil)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.do(ctx, 1)
		left <- err
	}()
	<-entered
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	answers, done := join(t, b, 2)
	gate <- struct{}{}
	<-entered
	gate <- struct{}{}
	done.Wait()
	require.NoError(t, answers[2].err)
}
