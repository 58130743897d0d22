package batch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/batch"
)

// The timeout is longer than any batch here takes.
const timeout = time.Minute

// recorder runs batches that take a second each.
type recorder struct {
	batches [][]int // appended without a lock: the race detector fails if two batches run at a time
}

func (r *recorder) tenfold(_ context.Context, in []int) ([]int, error) {
	r.batches = append(r.batches, in)
	time.Sleep(time.Second)
	out := make([]int, len(in))
	for i, n := range in {
		out[i] = 10 * n
	}
	return out, nil
}

// start passes each item to Do in a goroutine of its own, in the order of the items. The results
// may be read once the wait group is done.
func start[Out any](ctx context.Context, b batch.Batcher[int, Out], items ...int) (outs []Out, errs []error, all *sync.WaitGroup) {
	outs, errs, all = make([]Out, len(items)), make([]error, len(items)), &sync.WaitGroup{}
	for i, n := range items {
		all.Go(func() { outs[i], errs[i] = b.Do(ctx, n) })
		synctest.Wait()
	}
	return outs, errs, all
}

func TestItemsThatArriveDuringABatchShareTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		b := batch.New(3, timeout, r.tenfold)
		began := time.Now()
		outs, errs, all := start(t.Context(), b, 1, 2, 3, 4, 5)
		all.Wait()
		require.Equal(t, [][]int{{1}, {2, 3, 4}, {5}}, r.batches, "a lone one waits for nobody, and a batch has its limit")
		require.Equal(t, []int{10, 20, 30, 40, 50}, outs)
		require.Equal(t, make([]error, 5), errs)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestABatchThatFailsFailsForEachOfItsItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away, answers := errors.New("the database is away"), make(chan error)
		b := batch.New(10, timeout, func(_ context.Context, in []int) ([]int, error) { return in, <-answers })
		_, errs, all := start(t.Context(), b, 1, 2, 3)
		answers <- nil
		answers <- away
		all.Wait()
		require.Equal(t, []error{nil, away, away}, errs)
	})
}

func TestAnItemThatIsRefusedCostsItsNeighboursNothing(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(10, timeout, func(_ context.Context, in []int) ([]error, error) {
			time.Sleep(time.Second)
			refused := make([]error, len(in))
			for i, n := range in {
				if n%2 == 1 {
					refused[i] = odd
				}
			}
			return refused, nil
		})
		refused, errs, all := start(t.Context(), b, 1, 2, 3, 4)
		all.Wait()
		require.Equal(t, []error{odd, nil, odd, nil}, refused)
		require.Equal(t, make([]error, 4), errs)
	})
}

func TestACallerThatLeavesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		b := batch.New(10, timeout, r.tenfold)
		ctx, leave := context.WithCancel(t.Context())
		_, left, gone := start(ctx, b, 1, 2)
		outs, _, all := start(t.Context(), b, 3)
		leave()
		gone.Wait()
		require.ErrorIs(t, left[0], context.Canceled)
		require.ErrorIs(t, left[1], context.Canceled)
		all.Wait()
		require.Equal(t, []int{30}, outs)
		require.Equal(t, [][]int{{1}, {2, 3}}, r.batches)
	})
}

type key struct{}

func TestABatchBelongsToNoneOfItsCallersAndHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(10, timeout, func(ctx context.Context, in []int) ([]int, error) {
			require.Nil(t, ctx.Value(key{}), "what one caller may see isn't for the others")
			<-ctx.Done()
			return in, ctx.Err()
		})
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "of the first one"), time.Hour)
		defer cancel()
		_, err := b.Do(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, timeout, time.Since(began))
	})
}

func TestABatchThatPanicsFailsItsCallersAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	b := batch.New(10, timeout, func(_ context.Context, in []int) ([]int, error) {
		if in[0] == 0 {
			panic("at the disco")
		}
		return in, nil
	})
	_, err := b.Do(t.Context(), 0)
	var panicked *batch.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "at the disco", panicked.Value)
	require.Contains(t, err.Error(), "batch_test.go", "it says where")
	out, err := b.Do(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 1, out)
}

func TestABatchWithoutAResultForEachItemFails(t *testing.T) {
	t.Parallel()
	b := batch.New(10, timeout, func(context.Context, []int) ([]int, error) { return nil, nil })
	_, err := b.Do(t.Context(), 1)
	require.ErrorContains(t, err, "0 results")
}

func TestACallerOfDoAllOrNotLeavesOnlyBeforeItsBatchStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		b := batch.New(10, timeout, r.tenfold)
		full := errors.New("waited for long enough")
		ctx, leave := context.WithCancelCause(t.Context())
		outs, errs := make([]int, 3), make([]error, 3)
		var all sync.WaitGroup
		for i, ctx := range []context.Context{ctx, ctx, t.Context()} {
			all.Go(func() {
				done := b.DoAllOrNot(ctx, []int{i + 1})[0]
				outs[i], errs[i] = done.Out, done.Err
			})
			synctest.Wait()
		}
		leave(full)
		all.Wait()
		require.Equal(t, [][]int{{1}, {3}}, r.batches, "the second one isn't done")
		require.Equal(t, []int{10, 0, 30}, outs)
		require.NoError(t, errs[0], "it was under way")
		require.ErrorIs(t, errs[1], full)
		require.NoError(t, errs[2])
	})
}

func TestACallerOfDoAllOrNotThatHasLeftAlreadyStartsNoBatch(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, done := range batch.New(10, timeout, r.tenfold).DoAllOrNot(ctx, []int{1, 2}) {
		require.ErrorIs(t, done.Err, context.Canceled)
	}
	require.Empty(t, r.batches)
}

func TestACallerOfDoAllOrNotWaitsForItsOwnItemsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		b := batch.New(3, timeout, r.tenfold)
		began := time.Now()
		took := make([]time.Duration, 2)
		var all sync.WaitGroup
		for i, items := range [][]int{{1, 2, 3, 4}, {5, 6, 7}} {
			all.Go(func() {
				for n, done := range b.DoAllOrNot(t.Context(), items) {
					assert.Equal(t, batch.Result[int]{Out: 10 * items[n]}, done)
				}
				took[i] = time.Since(began)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, [][]int{{1, 2, 3}, {4, 5, 6}, {7}}, r.batches)
		require.Equal(t, []time.Duration{2 * time.Second, 3 * time.Second}, took, "whoever ran the batches")
	})
}

func TestBatchesOfOneKeyDoNotWaitForThoseOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		k := batch.NewKeyed(func(key string) batch.Batcher[int, string] {
			made++
			return batch.New(10, timeout, func(_ context.Context, in []int) ([]string, error) {
				time.Sleep(time.Second)
				out := make([]string, len(in))
				for i := range in {
					out[i] = fmt.Sprint(key, in)
				}
				return out, nil
			})
		})
		began := time.Now()
		keys := []string{"a", "a", "b", "a"}
		outs := make([]string, len(keys))
		var all sync.WaitGroup
		for i, key := range keys {
			all.Go(func() {
				done := k.DoAllOrNot(t.Context(), key, []int{i})[0]
				assert.NoError(t, done.Err)
				outs[i] = done.Out
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []string{"a[0]", "a[1 3]", "b[2]", "a[1 3]"}, outs)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.NoError(t, k.DoAllOrNot(t.Context(), "a", []int{4})[0].Err)
		require.Equal(t, 3, made, "a key that nobody uses is forgotten")
	})
}
