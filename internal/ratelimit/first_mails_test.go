package ratelimit_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/postgres"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestAnOrganizationBeginsSoManyFirstEMailsAnHourFromAllProcessesTogether(t *testing.T) {
	t.Parallel()
	url := testkit.SharedDatabase(t)
	here, there := testkit.SharedStore(t), fixture.Open(t, url)
	ours, theirs := fixture.Seed(t, here), fixture.Seed(t, here)
	const perHour = 10
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := map[int]time.Time{}
	for i := range 25 {
		all.Go(func() {
			process := here
			if i%2 == 0 {
				process = there
			}
			at, err := ratelimit.TakeFirstMailSlot(postgres.WithOrganization(t.Context(), ours.Organization), process, binary.BigEndian.AppendUint32(nil, uint32(i)), perHour)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				slots[i] = at
			}
		})
	}
	all.Wait()
	require.Len(t, slots, 25)
	hours := map[int]int{}
	for _, at := range slots {
		hours[int(at.Sub(began)/time.Hour)]++
	}
	require.Equal(t, map[int]int{0: 10, 1: 10, 2: 5}, hours)

	ctx := postgres.WithOrganization(t.Context(), ours.Organization)
	for i, first := range slots {
		again, err := ratelimit.TakeFirstMailSlot(ctx, there, binary.BigEndian.AppendUint32(nil, uint32(i)), perHour)
		require.NoError(t, err)
		require.Equal(t, first, again, "an address has one slot")
	}
	other, err := ratelimit.TakeFirstMailSlot(postgres.WithOrganization(t.Context(), theirs.Organization), here, []byte("x"), perHour)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), other, time.Minute, "another organization has slots of its own")
}
