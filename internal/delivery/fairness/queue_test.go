package fairness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/publicid"
)

// at is the time of everything in a test, unless the test uses another time.
var at = time.Now()

// taken returns the next group at a time at which every gathering group is due.
func taken(q *Queue) []change.PendingDelivery {
	group, _ := q.Take(60, at.Add(production().busyInterval))
	return group
}

// sends adds n deliveries of an organization and returns the number for which there was room.
func sends(q *Queue, organization publicid.Organization, eventType string, n int) int {
	added := 0
	for range n {
		if q.Add(change.PendingDelivery{ID: publicid.NewDelivery(), Organization: organization, EventType: eventType}, false, at) {
			added++
		}
	}
	return added
}

// composition counts the deliveries of each organization in a group.
func composition(group []change.PendingDelivery) map[publicid.Organization]int {
	n := map[publicid.Organization]int{}
	for _, d := range group {
		n[d.Organization]++
	}
	return n
}

func TestAnOrganizationWithMuchWaitingHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	q, busy, quiet := NewQueue(), publicid.NewOrganization(), publicid.NewOrganization()
	sends(q, busy, "post.created", 10_000)
	sends(q, quiet, "post.created", 1)
	require.Equal(t, map[publicid.Organization]int{busy: 60}, composition(taken(q)))
	require.Equal(t, map[publicid.Organization]int{quiet: 1}, composition(taken(q)))
	require.Equal(t, map[publicid.Organization]int{busy: 60}, composition(taken(q)))
}

func TestOrganizationsWithLittleWaitingShareAGroup(t *testing.T) {
	t.Parallel()
	q, first, second := NewQueue(), publicid.NewOrganization(), publicid.NewOrganization()
	sends(q, first, "post.created", 5)
	sends(q, second, "post.created", 7)
	require.Equal(t, map[publicid.Organization]int{first: 5, second: 7}, composition(taken(q)))
	require.Nil(t, taken(q))
}

func TestTheEventTypesOfAnOrganizationTakeTurns(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	sends(q, organization, "contact.updated", 1000)
	sends(q, organization, "post.created", 1)
	require.Equal(t, "contact.updated", taken(q)[0].EventType)
	require.Equal(t, "post.created", taken(q)[0].EventType)
	require.Equal(t, "contact.updated", taken(q)[0].EventType)
}

func TestAGroupKeepsTheOrderOfItsOrganization(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	var in, out []publicid.Delivery
	for range 130 {
		d := change.PendingDelivery{ID: publicid.NewDelivery(), Organization: organization, EventType: "post.created"}
		require.True(t, q.Add(d, false, at))
		in = append(in, d.ID)
	}
	for i := range 3 {
		group, _ := q.Take(60, at.Add(time.Duration(i)*production().busyInterval))
		for _, d := range group {
			out = append(out, d.ID)
		}
	}
	require.Equal(t, in, out)
}

func TestOneOrganizationCannotFillTheStartQueue(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	require.Equal(t, production().maxWaiting/2, sends(q, publicid.NewOrganization(), "post.created", production().maxWaiting))
	require.Equal(t, production().maxWaiting/4, sends(q, publicid.NewOrganization(), "post.created", production().maxWaiting))
	require.Equal(t, 1000, sends(q, publicid.NewOrganization(), "post.created", 1000))
}

func TestDeliveriesWithinTheSingleRateStartAtOnce(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	for i := range 200 {
		now := at.Add(time.Duration(i) * time.Second / time.Duration(production().singleRate))
		require.True(t, q.Add(change.PendingDelivery{Organization: organization, EventType: "post.created"}, false, now))
		group, _ := q.Take(60, now)
		require.Len(t, group, 1, i)
	}
}

// TestABusyStreamFormsGroupsAndHoldsUpNoOther sends 500 deliveries of one event type within a
// second, and one delivery of another type.
func TestABusyStreamFormsGroupsAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	groups := 0
	for i := range 500 {
		now := at.Add(time.Duration(i) * 2 * time.Millisecond)
		q.Add(change.PendingDelivery{Organization: organization, EventType: "contact.created"}, false, now)
		group, wait := q.Take(60, now)
		if group != nil {
			groups++
		} else {
			require.LessOrEqual(t, wait, production().busyInterval)
		}
		if i == 400 {
			q.Add(change.PendingDelivery{Organization: organization, EventType: "post.created"}, false, now)
			group, _ = q.Take(60, now)
			require.Equal(t, "post.created", group[0].EventType)
		}
	}
	require.LessOrEqual(t, groups, production().singleBurst+10+int(time.Second/production().busyInterval))
}

func TestDeliveriesToLaggingWebhooksFormGroupsAndHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	add := func(lags bool) {
		require.True(t, q.Add(change.PendingDelivery{Organization: organization, EventType: "post.created"}, lags, at))
	}
	add(true)
	group, _ := q.Take(60, at)
	require.Len(t, group, 1)
	add(true)
	add(true)
	add(false)
	group, _ = q.Take(60, at)
	require.Len(t, group, 1, "what doesn't lag has a group of its own")
	group, wait := q.Take(60, at)
	require.Nil(t, group)
	require.Equal(t, production().laggingInterval, wait)
	group, _ = q.Take(60, at.Add(production().laggingInterval))
	require.Len(t, group, 2)
}

func TestAFullGroupWaitsForNothing(t *testing.T) {
	t.Parallel()
	q, organization := NewQueue(), publicid.NewOrganization()
	sends(q, organization, "post.created", 180)
	for range 3 {
		group, _ := q.Take(60, at)
		require.Len(t, group, 60)
	}
}

func TestStreamsThatAreIdleAreForgotten(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	for i := range 3 * manyStreams {
		now := at.Add(time.Duration(i) * 10 * time.Millisecond)
		q.Add(change.PendingDelivery{Organization: publicid.NewOrganization(), EventType: "post.created"}, false, now)
		q.Take(60, now)
	}
	require.LessOrEqual(t, len(q.streams), manyStreams)
}

func TestAQueueThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	for range 100 {
		sends(q, publicid.NewOrganization(), "post.created", 70)
	}
	for now := at; q.size > 0; now = now.Add(production().busyInterval) {
		q.Take(60, now)
	}
	require.Zero(t, q.size)
	require.Empty(t, q.of)
	require.Empty(t, q.backlogs)
}
