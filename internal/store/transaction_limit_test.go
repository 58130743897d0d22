package store

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

func TestAnOrganizationHasSoManyTransactionsAtOnceAndOthersHaveTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &transactionLimit{size: 2, of: map[publicid.Organization]*slots{}}
		busy, other := publicid.NewOrganization(), publicid.NewOrganization()
		release, err := l.acquire(t.Context(), busy)
		require.NoError(t, err)
		_, err = l.acquire(t.Context(), busy)
		require.NoError(t, err)

		_, err = l.acquire(t.Context(), busy)
		require.ErrorIs(t, err, ErrBusy)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.acquire(gone, busy)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.acquire(t.Context(), other)
		require.NoError(t, err)

		release()
		_, err = l.acquire(t.Context(), busy)
		require.NoError(t, err, "one was released")
	})
}

func TestTheSlotsOfAnOrganizationThatNobodyUsesAreForgotten(t *testing.T) {
	t.Parallel()
	l := &transactionLimit{size: 2, of: map[publicid.Organization]*slots{}}
	id := publicid.NewOrganization()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			release, err := l.acquire(t.Context(), id)
			if err == nil {
				release()
			}
		})
	}
	all.Wait()
	require.Empty(t, l.of)
}
