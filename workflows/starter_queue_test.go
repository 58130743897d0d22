package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

// sends adds n deliveries of an organization and returns how many found room.
func sends(q *queue, organization publicid.Organization, eventType string, n int) int {
	added := 0
	for range n {
		if q.add(feedback.Dispatch{ID: publicid.NewDelivery(), Organization: organization, EventType: eventType}) {
			added++
		}
	}
	return added
}

// composition is how many of a group are whose.
func composition(group []feedback.Dispatch) map[publicid.Organization]int {
	n := map[publicid.Organization]int{}
	for _, d := range group {
		n[d.Organization]++
	}
	return n
}

func TestAnOrganizationWithMuchWaitingHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	q, busy, quiet := newQueue(), publicid.NewOrganization(), publicid.NewOrganization()
	sends(q, busy, "post.created", 10_000)
	sends(q, quiet, "post.created", 1)
	require.Equal(t, map[publicid.Organization]int{busy: 60}, composition(q.take(60)))
	require.Equal(t, map[publicid.Organization]int{quiet: 1}, composition(q.take(60)))
	require.Equal(t, map[publicid.Organization]int{busy: 60}, composition(q.take(60)))
}

func TestOrganizationsWithLittleWaitingShareAGroup(t *testing.T) {
	t.Parallel()
	q, first, second := newQueue(), publicid.NewOrganization(), publicid.NewOrganization()
	sends(q, first, "post.created", 5)
	sends(q, second, "post.created", 7)
	require.Equal(t, map[publicid.Organization]int{first: 5, second: 7}, composition(q.take(60)))
	require.Nil(t, q.take(60))
}

func TestTheEventTypesOfAnOrganizationTakeTurns(t *testing.T) {
	t.Parallel()
	q, organization := newQueue(), publicid.NewOrganization()
	sends(q, organization, "contact.updated", 1000)
	sends(q, organization, "post.created", 1)
	require.Equal(t, "contact.updated", q.take(60)[0].EventType)
	require.Equal(t, "post.created", q.take(60)[0].EventType)
	require.Equal(t, "contact.updated", q.take(60)[0].EventType)
}

func TestAGroupKeepsTheOrderOfItsOrganization(t *testing.T) {
	t.Parallel()
	q, organization := newQueue(), publicid.NewOrganization()
	var in, out []publicid.Delivery
	for range 130 {
		d := feedback.Dispatch{ID: publicid.NewDelivery(), Organization: organization, EventType: "post.created"}
		require.True(t, q.add(d))
		in = append(in, d.ID)
	}
	for group := q.take(60); group != nil; group = q.take(60) {
		for _, d := range group {
			out = append(out, d.ID)
		}
	}
	require.Equal(t, in, out)
}

func TestNobodyFillsTheQueueForTheOthers(t *testing.T) {
	t.Parallel()
	q := newQueue()
	require.Equal(t, maxWaiting/2, sends(q, publicid.NewOrganization(), "post.created", maxWaiting))
	require.Equal(t, maxWaiting/4, sends(q, publicid.NewOrganization(), "post.created", maxWaiting))
	require.Equal(t, 1000, sends(q, publicid.NewOrganization(), "post.created", 1000))
}

func TestAQueueThatIsEmptyAgainTakesNoMemory(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for range 100 {
		sends(q, publicid.NewOrganization(), "post.created", 70)
	}
	for q.take(60) != nil {
	}
	require.Zero(t, q.size)
	require.Empty(t, q.of)
	require.Empty(t, q.turns)
}
