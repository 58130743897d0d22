package fairness

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// fill takes room of so many bytes each until there is none.
func fill(m *PayloadMemory, organization publicid.Organization, bytes int) (releases []func()) {
	for {
		release := m.Acquire(noTime(), organization, bytes)
		if release == nil {
			return releases
		}
		releases = append(releases, release)
	}
}

// noTime is the context of who doesn't wait.
func noTime() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAnOrganizationHoldsHalfOfThePayloadMemoryAndTheNextOneFindsRoom(t *testing.T) {
	t.Parallel()
	m, total := newPayloadMemory(room(1024)), 0
	for _, share := range []int{512, 256, 128, 64} {
		total += share
		require.Len(t, fill(m, publicid.NewOrganization(), 1), share)
		require.Equal(t, total, m.used)
	}
}

func TestOrganizationsThatGoOnGetEqualSharesOfThePayloadMemory(t *testing.T) {
	t.Parallel()
	m, first, second := newPayloadMemory(room(900)), publicid.NewOrganization(), publicid.NewOrganization()
	held := fill(m, first, 1)
	fill(m, second, 1)
	for _, release := range held { // each attempt ends, and both want more
		release()
		fill(m, first, 1)
		fill(m, second, 1)
	}
	require.InDelta(t, 300, m.held[first], 1)
	require.InDelta(t, 300, m.held[second], 1)
}

func TestWhoWaitsForPayloadMemoryGetsItInTurnWithinAnOrganization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, of := newPayloadMemory(room(1000)), publicid.NewOrganization()
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
		require.NotNil(t, m.Acquire(noTime(), publicid.NewOrganization(), 250), "another organization doesn't wait behind")
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

func TestAPayloadThatIsLargerThanAllOfThePayloadMemoryGetsThroughAlone(t *testing.T) {
	t.Parallel()
	m := newPayloadMemory(room(1000))
	release := m.Acquire(noTime(), publicid.NewOrganization(), 5000)
	require.NotNil(t, release)
	release()
	require.Zero(t, m.used)
	require.Empty(t, m.held)
	require.Zero(t, m.waiting.Len())
}

// room are the rules with another size of the payload memory.
func room(bytes int) rules {
	r := production()
	r.payloadMemoryMax = bytes
	return r
}
