package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABucketRefillsInAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBuckets[string](30)
		for i := range 30 {
			taken := b.Take("here")
			require.True(t, taken.OK)
			require.InDelta(t, 29-i, taken.Left, 0.01)
		}
		require.False(t, b.Take("here").OK)
		require.True(t, b.Take("there").OK, "each key has its own")
		time.Sleep(2 * time.Second)
		require.True(t, b.Take("here").OK)
		require.False(t, b.Take("here").OK)
		time.Sleep(time.Minute)
		require.InDelta(t, 29, b.Take("here").Left, 0.01, "and holds no more than it did")
	})
}

func TestTheBucketsRememberABoundedNumberOfKeys(t *testing.T) {
	t.Parallel()
	b := NewBuckets[int](1)
	require.True(t, b.Take(0).OK)
	for i := range Most - 1 {
		b.Take(i + 1)
	}
	require.False(t, b.Take(0).OK, "still there, and the latest now")
	for i := range Most - 1 {
		b.Take(Most + i)
	}
	require.False(t, b.Take(0).OK, "who came last goes last")
	require.True(t, b.Take(1).OK, "forgotten")
	require.Equal(t, Most, b.of.Len())
}
