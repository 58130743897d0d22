package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/ratelimit"
)

func TestABucketRefillsInAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.NewBuckets[string](30)
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
	b := ratelimit.NewBuckets[int](1)
	require.True(t, b.Take(0).OK)
	for i := range ratelimit.Most - 1 {
		b.Take(i + 1)
	}
	require.False(t, b.Take(0).OK, "still there, and the latest now")
	for i := range ratelimit.Most - 1 {
		b.Take(ratelimit.Most + i)
	}
	require.False(t, b.Take(0).OK, "the latest key goes last")
	for i := range ratelimit.Most {
		b.Take(2*ratelimit.Most + i)
	}
	require.True(t, b.Take(0).OK, "forgotten, because so many others came since")
}
