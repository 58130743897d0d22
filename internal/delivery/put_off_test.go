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

// putOff postpones attempts by an hour, for a separate run.
func (o *outbox) putOff(all ...delivery.PutOff) {
	o.T.Helper()
	for i := range all {
		all[i].Delay = time.Hour
	}
	require.NoError(o.T, delivery.PutOffAll(o.Ctx, o.Store, "waits", "run of waits", all))
}

func TestADeliveryThatIsPutOffHasAMomentAndARun(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	first, third := o.Delivery(), o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2) })
	o.putOff(delivery.PutOff{ID: first, Number: 1}, delivery.PutOff{ID: third, Number: 3})
	for _, id := range []publicid.Delivery{first, third} {
		row := o.Row(id)
		require.WithinDuration(t, time.Now().Add(time.Hour), *row.NextAttemptAt, time.Minute)
		require.Equal(t, "waits", *row.WorkflowID)
		require.Equal(t, "run of waits", *row.WorkflowRunID)
	}
	overdue, err := delivery.FindOverdue(o.Ctx, o.Store, 0, delivery.Overdue{}, 10)
	require.NoError(t, err)
	require.Empty(t, overdue, "nobody starts them again")
	claimed := o.Claim(first, 1)
	require.True(t, claimed.Granted, "an operator needn't wait")
	require.True(t, claimed.PutOff)
}

func TestAPostponementSkipsADeliveryThatHasMovedOn(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	ended := o.Delivery(fixture.Ended(deliveryrow.StatusSucceeded))
	further := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(1) })
	attempted := o.Delivery()
	require.True(t, o.Claim(attempted, 1).Granted)
	for _, id := range []publicid.Delivery{ended, further, attempted} {
		before := o.Row(id).String()
		o.putOff(delivery.PutOff{ID: id, Number: 1})
		require.Equal(t, before, o.Row(id).String())
	}
}
