package inflight

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

func TestAnOrganizationHasSoManyUnderWayAtOnceAndOthersHaveTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit[publicid.Organization](2, time.Second)
		busy, other := publicid.NewOrganization(), publicid.NewOrganization()
		release, err := l.Acquire(t.Context(), busy)
		require.NoError(t, err)
		_, err = l.Acquire(t.Context(), busy)
		require.NoError(t, err)

		_, err = l.Acquire(t.Context(), busy)
		require.ErrorIs(t, err, ErrBusy)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Acquire(gone, busy)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.Acquire(t.Context(), other)
		require.NoError(t, err)

		release()
		_, err = l.Acquire(t.Context(), busy)
		require.NoError(t, err, "one was released")
	})
}

func TestTheLimitForgetsOrganizationsWithoutUsedSlots(t *testing.T) {
	t.Parallel()
	l := NewLimit[publicid.Organization](2, time.Second)
	id := publicid.NewOrganization()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			release, err := l.Acquire(t.Context(), id)
			if err == nil {
				release()
			}
		})
	}
	all.Wait()
	require.Empty(t, l.slots.Of)
}
