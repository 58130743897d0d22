package delivery_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	deliveryrow "earshot/ent/db/delivery"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

const grace = 10 * time.Minute

func due(at time.Time) func(*db.DeliveryCreate) {
	return func(c *db.DeliveryCreate) { c.SetNextAttemptAt(at) }
}

// overdue reads all pages of the given size.
func (o *outbox) overdue(size int) []delivery.Overdue {
	o.T.Helper()
	var (
		all  []delivery.Overdue
		last delivery.Overdue
	)
	for {
		page, err := delivery.FindOverdue(o.T.Context(), o.Store, grace, last, size)
		require.NoError(o.T, err)
		require.LessOrEqual(o.T, len(page), size)
		if len(page) == 0 {
			return all
		}
		all, last = append(all, page...), page[len(page)-1]
		require.Less(o.T, len(all), 1000, "the pages come round")
	}
}

func idsOf(found []delivery.Overdue) []publicid.Delivery {
	ids := []publicid.Delivery{}
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestAForgottenDeliveryIsFoundWithAllThatItsStartNeeds(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	at := fixture.Ago(time.Hour)
	never := o.Delivery(due(at))
	lost := o.Delivery(due(at.Add(time.Second)), func(c *db.DeliveryCreate) { c.SetWorkflowID(fixture.Run) })

	found := o.overdue(10)
	require.Len(t, found, 2)
	for _, f := range found {
		f.DueAt = time.Time{}
		require.Contains(t, []delivery.Overdue{
			{ID: never, Webhook: o.Webhook, Organization: o.Organization, EventType: "post.created", URL: fixture.HookURL},
			{ID: lost, Webhook: o.Webhook, Organization: o.Organization, EventType: "post.created", URL: fixture.HookURL, WorkflowID: fixture.Run},
		}, f)
	}
	require.True(t, at.Equal(found[0].DueAt))
}

func TestPagesOfForgottenDeliveriesHoldEachOnceInTheOrderTheyWereDue(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	theirs := another(t, o.Store, o.Pool)
	same := fixture.Ago(time.Hour)
	// Several deliveries are due in the same microsecond, like those of one transaction.
	var expected []publicid.Delivery
	for i := range 20 {
		from := []*outbox{o, theirs}[i%2]
		expected = append(expected, from.Delivery(due(same.Add(time.Duration(i/5)*time.Microsecond))))
	}
	expected = append([]publicid.Delivery{o.Delivery(due(same.Add(-time.Hour)))}, expected...)
	for _, size := range []int{1, 2, 5, 7, 21, 100} {
		require.Equal(t, expected, idsOf(o.overdue(size)), "pages of %d", size)
	}
}

func TestADeliveryWithinTheGraceIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.Delivery(due(fixture.Ago(grace / 2)))
	o.Delivery(due(fixture.Ago(-time.Hour)))
	beyond := o.Delivery(due(fixture.Ago(2 * grace)))
	require.Equal(t, []publicid.Delivery{beyond}, idsOf(o.overdue(10)))
}

func TestADeliveryWithAValidLeaseIsNotOverdue(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.Delivery(due(fixture.Ago(time.Hour)), func(c *db.DeliveryCreate) { c.SetLeaseUntil(fixture.Ago(-time.Hour)) })
	died := o.Delivery(due(fixture.Ago(time.Hour)), func(c *db.DeliveryCreate) { c.SetLeaseUntil(fixture.Ago(time.Minute)) })
	require.Equal(t, []publicid.Delivery{died}, idsOf(o.overdue(10)))
}

func TestADeliveryThatHasEndedIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	for _, status := range []deliveryrow.Status{deliveryrow.StatusSucceeded, deliveryrow.StatusFailed} {
		o.Delivery(fixture.Ended(status), due(fixture.Ago(time.Hour)))
	}
	require.Empty(t, o.overdue(10))
}

func TestAForgottenDeliveryToADisabledWebhookIsFoundToo(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	id := o.Delivery(due(fixture.Ago(time.Hour)))
	require.NoError(t, o.Store.Client().Webhook.UpdateOneID(o.Webhook).SetEnabled(false).Exec(o.Ctx))
	require.Equal(t, []publicid.Delivery{id}, idsOf(o.overdue(10)), "its end has to be recorded")
}
