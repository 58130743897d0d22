package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

const grace = 10 * time.Minute

func due(at time.Time) func(*db.DeliveryCreate) {
	return func(c *db.DeliveryCreate) { c.SetNextAttemptAt(at) }
}

// overdue reads all pages of the given size.
func (o *outbox) overdue(size int) []store.Overdue {
	o.t.Helper()
	var (
		all  []store.Overdue
		last store.Overdue
	)
	for {
		page, err := o.store.OverdueDeliveries(o.t.Context(), grace, last, size)
		require.NoError(o.t, err)
		require.LessOrEqual(o.t, len(page), size)
		if len(page) == 0 {
			return all
		}
		all, last = append(all, page...), page[len(page)-1]
		require.Less(o.t, len(all), 1000, "the pages come round")
	}
}

func idsOf(found []store.Overdue) []publicid.Delivery {
	ids := []publicid.Delivery{}
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestAForgottenDeliveryIsFoundWithAllThatItsStartNeeds(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	at := ago(time.Hour)
	never := o.delivery(due(at))
	lost := o.delivery(due(at.Add(time.Second)), func(c *db.DeliveryCreate) { c.SetWorkflowID(run) })

	found := o.overdue(10)
	require.Len(t, found, 2)
	for _, f := range found {
		f.DueAt = time.Time{}
		require.Contains(t, []store.Overdue{
			{ID: never, Webhook: o.webhook, Organization: o.organization, EventType: "post.created", URL: hookURL},
			{ID: lost, Webhook: o.webhook, Organization: o.organization, EventType: "post.created", URL: hookURL, WorkflowID: run},
		}, f)
	}
	require.True(t, at.Equal(found[0].DueAt))
}

func TestPagesOfForgottenDeliveriesHoldEachOnceInTheOrderTheyWereDue(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	theirs := another(t, o.store, o.pool)
	same := ago(time.Hour)
	// Several deliveries are due in the same microsecond, like those of one transaction.
	var expected []publicid.Delivery
	for i := range 20 {
		from := []*outbox{o, theirs}[i%2]
		expected = append(expected, from.delivery(due(same.Add(time.Duration(i/5)*time.Microsecond))))
	}
	expected = append([]publicid.Delivery{o.delivery(due(same.Add(-time.Hour)))}, expected...)
	for _, size := range []int{1, 2, 5, 7, 21, 100} {
		require.Equal(t, expected, idsOf(o.overdue(size)), "pages of %d", size)
	}
}

func TestADeliveryWithinTheGraceIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.delivery(due(ago(grace / 2)))
	o.delivery(due(ago(-time.Hour)))
	beyond := o.delivery(due(ago(2 * grace)))
	require.Equal(t, []publicid.Delivery{beyond}, idsOf(o.overdue(10)))
}

func TestADeliveryWithAValidLeaseIsNotOverdue(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.delivery(due(ago(time.Hour)), func(c *db.DeliveryCreate) { c.SetLeaseUntil(ago(-time.Hour)) })
	died := o.delivery(due(ago(time.Hour)), func(c *db.DeliveryCreate) { c.SetLeaseUntil(ago(time.Minute)) })
	require.Equal(t, []publicid.Delivery{died}, idsOf(o.overdue(10)))
}

func TestADeliveryThatHasEndedIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	for _, status := range []delivery.Status{delivery.StatusSucceeded, delivery.StatusFailed} {
		o.delivery(ended(status), due(ago(time.Hour)))
	}
	require.Empty(t, o.overdue(10))
}

func TestAForgottenDeliveryToADisabledWebhookIsFoundToo(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	id := o.delivery(due(ago(time.Hour)))
	require.NoError(t, o.store.Client().Webhook.UpdateOneID(o.webhook).SetEnabled(false).Exec(o.ctx))
	require.Equal(t, []publicid.Delivery{id}, idsOf(o.overdue(10)), "its end has to be recorded")
}
