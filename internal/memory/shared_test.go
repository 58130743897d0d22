package memory

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// fill acquires rooms of the given size until none is left.
func fill(m *Shared[string], owner string, bytes int) (releases []func()) {
	for {
		release := m.Acquire(noTime(), owner, bytes)
		if release == nil {
			return releases
		}
		releases = append(releases, release)
	}
}

// noTime returns a context that has already ended, for calls that don't wait.
func noTime() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAnOwnerHoldsHalfAndTheNextOneFindsRoom(t *testing.T) {
	t.Parallel()
	m, total := NewShared[string](1024), 0
	for i, share := range []int{512, 256, 128, 64} {
		total += share
		require.Len(t, fill(m, fmt.Sprint(i), 1), share)
		require.Equal(t, total, m.used)
	}
}

func TestOwnersThatGoOnGetEqualShares(t *testing.T) {
	t.Parallel()
	m, first, second := NewShared[string](900), "first", "second"
	held := fill(m, first, 1)
	fill(m, second, 1)
	for _, release := range held { // each attempt ends, and both owners want more
		release()
		fill(m, first, 1)
		fill(m, second, 1)
	}
	require.InDelta(t, 300, m.held[first], 1)
	require.InDelta(t, 300, m.held[second], 1)
}

func TestWaitingCallersOfAnOwnerGetMemoryInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, of := NewShared[string](1000), "one"
		release := m.Acquire(noTime(), of, 300)
		ctx, leave := context.WithCancel(t.Context())
		var large, small, left func()
		go func() { left = m.Acquire(ctx, of, 400) }()
		synctest.Wait()
		go func() { large = m.Acquire(t.Context(), of, 250) }()
		synctest.Wait()
		go func() { small = m.Acquire(t.Context(), of, 250) }()
		synctest.Wait()
		require.Nil(t, large)
		require.NotNil(t, m.Acquire(noTime(), "another", 250), "another owner doesn't wait behind")
		leave()
		synctest.Wait()
		require.Nil(t, left)
		require.Nil(t, large)
		require.Nil(t, small)
		release()
		synctest.Wait()
		require.NotNil(t, large)
		require.Nil(t, small)
		large()
		synctest.Wait()
		require.NotNil(t, small)
	})
}

func TestARequestForMoreThanTheWholeBudgetIsGranted(t *testing.T) {
	t.Parallel()
	m := NewShared[string](1000)
	release := m.Acquire(noTime(), "another", 5000)
	require.NotNil(t, release)
	release()
	require.Zero(t, m.used)
	require.Empty(t, m.held)
	require.Zero(t, m.waiting.Len())
}
