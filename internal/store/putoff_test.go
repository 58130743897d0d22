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

// putOff postpones attempts by an hour, for a separate run.
func (o *outbox) putOff(all ...store.PutOff) {
	o.t.Helper()
	for i := range all {
		all[i].Delay = time.Hour
	}
	require.NoError(o.t, o.store.PutOffDeliveries(o.ctx, "waits", "run of waits", all))
}

func TestADeliveryThatIsPutOffHasAMomentAndARun(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	first, third := o.delivery(), o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2) })
	o.putOff(store.PutOff{ID: first, Number: 1}, store.PutOff{ID: third, Number: 3})
	for _, id := range []publicid.Delivery{first, third} {
		row := o.row(id)
		require.WithinDuration(t, time.Now().Add(time.Hour), *row.NextAttemptAt, time.Minute)
		require.Equal(t, "waits", *row.WorkflowID)
		require.Equal(t, "run of waits", *row.WorkflowRunID)
	}
	overdue, err := o.store.OverdueDeliveries(o.ctx, 0, store.Overdue{}, 10)
	require.NoError(t, err)
	require.Empty(t, overdue, "nobody starts them again")
	claimed := o.claim(first, 1)
	require.True(t, claimed.Granted, "an operator needn't wait")
	require.True(t, claimed.PutOff)
}

func TestAPostponementSkipsADeliveryThatHasMovedOn(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	ended := o.delivery(ended(delivery.StatusSucceeded))
	further := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(1) })
	attempted := o.delivery()
	require.True(t, o.claim(attempted, 1).Granted)
	for _, id := range []publicid.Delivery{ended, further, attempted} {
		before := o.row(id).String()
		o.putOff(store.PutOff{ID: id, Number: 1})
		require.Equal(t, before, o.row(id).String())
	}
}
