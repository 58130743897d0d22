package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	deliveryrow "earshot/ent/db/delivery"
	"earshot/ent/db/recovery"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

const month = 30 * 24 * time.Hour

// aged gives a row an id of a time in the past. Each call makes a new id.
func aged(d time.Duration) func(*db.DeliveryCreate) {
	return func(c *db.DeliveryCreate) { c.SetID(fixture.IDAt(publicid.DeliveryAt, fixture.Ago(d))) }
}

// happened makes an event that is as old as d.
func (o *outbox) happened(d time.Duration) publicid.Event {
	o.T.Helper()
	made, err := o.Store.Client().Event.Create().SetID(fixture.IDAt(publicid.EventAt, fixture.Ago(d))).
		SetType("post.created").SetPayload([]byte(fixture.Payload)).Save(o.Ctx)
	require.NoError(o.T, err)
	return made.ID
}

// removeAll removes every page of a kind that is older than a month.
func (o *outbox) removeAll(kind retention.Expired) (removed int) {
	o.T.Helper()
	next := ""
	for {
		n, after, err := retention.RemoveExpired(o.T.Context(), o.Store, kind, fixture.Ago(month), next)
		require.NoError(o.T, err)
		removed += n
		if after == "" {
			return removed
		}
		require.Greater(o.T, after, next)
		next = after
	}
}

func TestDeliveriesThatEndedAreRemovedWhenTheyAreOldAndPendingOnesStay(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	attempted := o.Delivery(aged(month + time.Hour))
	o.Claim(attempted, 1)
	o.Record(delivery.Result{ID: attempted, Number: 1, StartedAt: fixture.Ago(month)})
	require.Len(t, o.Attempts(attempted), 1)
	o.Delivery(aged(month+2*time.Hour), fixture.Ended(deliveryrow.StatusFailed))
	o.Delivery(aged(month+3*time.Hour), fixture.Ended(deliveryrow.StatusSucceeded))
	stay := []publicid.Delivery{
		o.Delivery(aged(month + 4*time.Hour)),
		o.Delivery(aged(month-time.Hour), fixture.Ended(deliveryrow.StatusFailed)),
		o.Delivery(fixture.Ended(deliveryrow.StatusSucceeded)),
		o.Delivery(),
	}
	require.Equal(t, 3, o.removeAll(retention.ExpiredDeliveries))
	require.Equal(t, stay, o.Deliveries())
	require.Empty(t, o.Attempts(attempted), "attempts go with their delivery")
}

func TestAnEventIsRemovedWhenItIsOldAndNoDeliveryRefersToIt(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.happened(month + time.Hour)
	referred := o.happened(month + 2*time.Hour)
	young := o.happened(month - time.Hour)
	o.Delivery(func(c *db.DeliveryCreate) { c.SetEventID(referred) })
	require.Equal(t, 1, o.removeAll(retention.ExpiredEvents))
	left := map[publicid.Event]bool{}
	for _, e := range o.Store.Client().Event.Query().AllX(o.Ctx) {
		left[e.ID] = true
	}
	require.Equal(t, map[publicid.Event]bool{referred: true, young: true, o.Event: true}, left)
}

func TestRecoveriesThatEndedAreRemovedWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	recovered := func(d time.Duration, status recovery.Status) {
		o.Store.Client().Recovery.Create().SetID(fixture.IDAt(publicid.RecoveryAt, fixture.Ago(d))).SetWebhookID(o.Webhook).
			SetSince(fixture.Ago(d)).SetUntil(fixture.Ago(0)).SetStatus(status).SaveX(o.Ctx)
	}
	recovered(month+time.Hour, recovery.StatusCompleted)
	recovered(month+2*time.Hour, recovery.StatusStopped)
	recovered(month+3*time.Hour, recovery.StatusRunning)
	recovered(month-time.Hour, recovery.StatusCompleted)
	require.Equal(t, 2, o.removeAll(retention.ExpiredRecoveries))
	require.Equal(t, 2, o.Store.Client().Recovery.Query().CountX(o.Ctx))
}

func TestRetentionSkipsLockedRowsWithoutWaiting(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	held := o.Delivery(aged(month+time.Hour), fixture.Ended(deliveryrow.StatusFailed))
	o.Delivery(aged(month+2*time.Hour), fixture.Ended(deliveryrow.StatusFailed))
	tx, err := o.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // otherwise the next test would wait
	// A replay takes the same lock on the delivery that it replays.
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR KEY SHARE", held.UUID().String())
	require.NoError(t, err)
	require.Equal(t, 1, o.removeAll(retention.ExpiredDeliveries))
	require.Equal(t, []publicid.Delivery{held}, o.Deliveries())
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, o.removeAll(retention.ExpiredDeliveries))
}

func TestMoreThanOnePageIsRemovedPageByPage(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	rows := make([]*db.DeliveryCreate, 1001)
	for i := range rows {
		rows[i] = o.Store.Client().Delivery.Create().SetWebhookID(o.Webhook).SetEventID(o.Event).SetEventType("post.created").
			SetID(fixture.IDAt(publicid.DeliveryAt, fixture.Ago(month+time.Duration(i+1)*time.Minute))).SetStatus(deliveryrow.StatusFailed)
	}
	o.Store.Client().Delivery.CreateBulk(rows...).ExecX(o.Ctx)
	n, next, err := retention.RemoveExpired(t.Context(), o.Store, retention.ExpiredDeliveries, fixture.Ago(month), "")
	require.NoError(t, err)
	require.Equal(t, 500, n)
	require.NotEmpty(t, next)
	n, next, err = retention.RemoveExpired(t.Context(), o.Store, retention.ExpiredDeliveries, fixture.Ago(month), next)
	require.NoError(t, err)
	require.Equal(t, 500, n)
	n, next, err = retention.RemoveExpired(t.Context(), o.Store, retention.ExpiredDeliveries, fixture.Ago(month), next)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, next)
}

func TestTheRetentionTouchesNothingOfAnotherKind(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := fixture.Seed(t, s)
	// Every row is older than a time in the future, as if the month had gone by.
	for _, kind := range []retention.Expired{retention.ExpiredDeliveries, retention.ExpiredEvents, retention.ExpiredRecoveries} {
		_, _, err := retention.RemoveExpired(t.Context(), s, kind, time.Now().Add(time.Hour), "")
		require.NoError(t, err)
	}
	c := s.Client()
	for name, count := range map[string]int{
		"organizations": c.Organization.Query().CountX(r.Ctx), "users": c.User.Query().CountX(r.Ctx),
		"keys": c.APIKey.Query().CountX(r.Ctx), "boards": c.Board.Query().CountX(r.Ctx), "tags": c.Tag.Query().CountX(r.Ctx),
		"contacts": c.Contact.Query().CountX(r.Ctx), "votes": c.Vote.Query().CountX(r.Ctx),
		"entries": c.ChangelogEntry.Query().CountX(r.Ctx), "webhooks": c.Webhook.Query().CountX(r.Ctx),
		// The two deliveries are still pending, so their event stays.
		"events": c.Event.Query().CountX(r.Ctx),
	} {
		require.Equal(t, 1, count, name)
	}
	require.Equal(t, 2, c.Post.Query().CountX(r.Ctx))
	require.Equal(t, 2, c.Comment.Query().CountX(r.Ctx))
	require.Equal(t, 2, c.Delivery.Query().CountX(r.Ctx))
}

func TestARecordOfAnIdempotencyKeyGoesAfterADay(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	old, young := fixture.Seed(t, s), fixture.Seed(t, s)
	_, err := c.Exec(t.Context(), "UPDATE idempotency_records SET created_at = created_at - interval '24 hours' WHERE organization_id = $1", old.Organization)
	require.NoError(t, err)
	removed, whole, err := retention.RemoveIdempotencyRecords(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.False(t, whole, "there are no more")
	require.Equal(t, []string{young.Organization.UUID().String()}, fixture.Texts(t, c, "SELECT organization_id::text FROM idempotency_records"))
}
