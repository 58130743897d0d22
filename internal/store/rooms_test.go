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
		r := &rooms{size: 2, of: map[publicid.Organization]*room{}}
		busy, other := publicid.NewOrganization(), publicid.NewOrganization()
		leave, err := r.enter(t.Context(), busy)
		require.NoError(t, err)
		_, err = r.enter(t.Context(), busy)
		require.NoError(t, err)

		_, err = r.enter(t.Context(), busy)
		require.ErrorIs(t, err, ErrBusy)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.enter(gone, busy)
		require.ErrorIs(t, err, context.Canceled)
		_, err = r.enter(t.Context(), other)
		require.NoError(t, err)

		leave()
		_, err = r.enter(t.Context(), busy)
		require.NoError(t, err, "a place was left")
	})
}

func TestARoomThatEverybodyLeftIsForgotten(t *testing.T) {
	t.Parallel()
	r := &rooms{size: 2, of: map[publicid.Organization]*room{}}
	id := publicid.NewOrganization()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			leave, err := r.enter(t.Context(), id)
			if err == nil {
				leave()
			}
		})
	}
	all.Wait()
	require.Empty(t, r.of)
}
