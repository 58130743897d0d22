package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/recovery"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/testkit"
)

const month = 30 * 24 * time.Hour

// aged gives a row an id of a time in the past. Each call makes a new id.
func aged(d time.Duration) func(*db.DeliveryCreate) {
	return func(c *db.DeliveryCreate) { c.SetID(publicid.DeliveryAt(ago(d))) }
}

// happened makes an event that is as old as d.
func (o *outbox) happened(d time.Duration) publicid.Event {
	o.t.Helper()
	made, err := o.store.Client().Event.Create().SetID(publicid.EventAt(ago(d))).
		SetType("post.created").SetPayload([]byte(payload)).Save(o.ctx)
	require.NoError(o.t, err)
	return made.ID
}

// removeAll removes every page of a kind that is older than a month.
func (o *outbox) removeAll(kind store.Expired) (removed int) {
	o.t.Helper()
	next := ""
	for {
		n, after, err := o.store.RemoveExpired(o.t.Context(), kind, ago(month), next)
		require.NoError(o.t, err)
		removed += n
		if after == "" {
			return removed
		}
		require.Greater(o.t, after, next)
		next = after
	}
}

func (o *outbox) deliveries() (left []publicid.Delivery) {
	o.t.Helper()
	for _, d := range o.store.Client().Delivery.Query().Order(db.Asc(delivery.FieldID)).AllX(o.ctx) {
		left = append(left, d.ID)
	}
	return left
}

func TestDeliveriesThatEndedAreRemovedWhenTheyAreOldAndPendingOnesStay(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	attempted := o.delivery(aged(month + time.Hour))
	o.claim(attempted, 1)
	o.record(store.Result{ID: attempted, Number: 1, StartedAt: ago(month)})
	require.Len(t, o.attempts(attempted), 1)
	o.delivery(aged(month+2*time.Hour), ended(delivery.StatusFailed))
	o.delivery(aged(month+3*time.Hour), ended(delivery.StatusSucceeded))
	stay := []publicid.Delivery{
		o.delivery(aged(month + 4*time.Hour)),
		o.delivery(aged(month-time.Hour), ended(delivery.StatusFailed)),
		o.delivery(ended(delivery.StatusSucceeded)),
		o.delivery(),
	}
	require.Equal(t, 3, o.removeAll(store.ExpiredDeliveries))
	require.Equal(t, stay, o.deliveries())
	require.Empty(t, o.attempts(attempted), "attempts go with their delivery")
}

func TestAnEventIsRemovedWhenItIsOldAndNoDeliveryRefersToIt(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	o.happened(month + time.Hour)
	referred := o.happened(month + 2*time.Hour)
	young := o.happened(month - time.Hour)
	o.delivery(func(c *db.DeliveryCreate) { c.SetEventID(referred) })
	require.Equal(t, 1, o.removeAll(store.ExpiredEvents))
	left := map[publicid.Event]bool{}
	for _, e := range o.store.Client().Event.Query().AllX(o.ctx) {
		left[e.ID] = true
	}
	require.Equal(t, map[publicid.Event]bool{referred: true, young: true, o.event: true}, left)
}

func TestRecoveriesThatEndedAreRemovedWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	recovered := func(d time.Duration, status recovery.Status) {
		o.store.Client().Recovery.Create().SetID(publicid.RecoveryAt(ago(d))).SetWebhookID(o.webhook).
			SetSince(ago(d)).SetUntil(ago(0)).SetStatus(status).SaveX(o.ctx)
	}
	recovered(month+time.Hour, recovery.StatusCompleted)
	recovered(month+2*time.Hour, recovery.StatusStopped)
	recovered(month+3*time.Hour, recovery.StatusRunning)
	recovered(month-time.Hour, recovery.StatusCompleted)
	require.Equal(t, 2, o.removeAll(store.ExpiredRecoveries))
	require.Equal(t, 2, o.store.Client().Recovery.Query().CountX(o.ctx))
}

func TestRetentionSkipsLockedRowsWithoutWaiting(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, err := store.Open(store.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	o := another(t, s, poolOf(t, url))
	held := o.delivery(aged(month+time.Hour), ended(delivery.StatusFailed))
	o.delivery(aged(month+2*time.Hour), ended(delivery.StatusFailed))
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	// A replay takes the same lock on the delivery that it replays.
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR KEY SHARE", held.UUID().String())
	require.NoError(t, err)
	require.Equal(t, 1, o.removeAll(store.ExpiredDeliveries))
	require.Equal(t, []publicid.Delivery{held}, o.deliveries())
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, o.removeAll(store.ExpiredDeliveries))
}

func TestMoreThanOnePageIsRemovedPageByPage(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	rows := make([]*db.DeliveryCreate, 1001)
	for i := range rows {
		rows[i] = o.store.Client().Delivery.Create().SetWebhookID(o.webhook).SetEventID(o.event).SetEventType("post.created").
			SetID(publicid.DeliveryAt(ago(month + time.Duration(i+1)*time.Minute))).SetStatus(delivery.StatusFailed)
	}
	o.store.Client().Delivery.CreateBulk(rows...).ExecX(o.ctx)
	n, next, err := o.store.RemoveExpired(t.Context(), store.ExpiredDeliveries, ago(month), "")
	require.NoError(t, err)
	require.Equal(t, 500, n)
	require.NotEmpty(t, next)
	n, next, err = o.store.RemoveExpired(t.Context(), store.ExpiredDeliveries, ago(month), next)
	require.NoError(t, err)
	require.Equal(t, 500, n)
	n, next, err = o.store.RemoveExpired(t.Context(), store.ExpiredDeliveries, ago(month), next)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, next)
}

func TestTheRetentionTouchesNothingOfAnotherKind(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := seed(t, s)
	// Every row is older than a time in the future, as if the month had gone by.
	for _, kind := range []store.Expired{store.ExpiredDeliveries, store.ExpiredEvents, store.ExpiredRecoveries} {
		_, _, err := s.RemoveExpired(t.Context(), kind, time.Now().Add(time.Hour), "")
		require.NoError(t, err)
	}
	c := s.Client()
	for name, count := range map[string]int{
		"organizations": c.Organization.Query().CountX(r.ctx), "users": c.User.Query().CountX(r.ctx),
		"keys": c.APIKey.Query().CountX(r.ctx), "boards": c.Board.Query().CountX(r.ctx), "tags": c.Tag.Query().CountX(r.ctx),
		"contacts": c.Contact.Query().CountX(r.ctx), "votes": c.Vote.Query().CountX(r.ctx),
		"entries": c.ChangelogEntry.Query().CountX(r.ctx), "webhooks": c.Webhook.Query().CountX(r.ctx),
		// The two deliveries are still pending, so their event stays.
		"events": c.Event.Query().CountX(r.ctx),
	} {
		require.Equal(t, 1, count, name)
	}
	require.Equal(t, 2, c.Post.Query().CountX(r.ctx))
	require.Equal(t, 2, c.Comment.Query().CountX(r.ctx))
	require.Equal(t, 2, c.Delivery.Query().CountX(r.ctx))
}

func TestARecordOfAnIdempotencyKeyGoesAfterADay(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := open(t, url), connect(t, url)
	old, young := seed(t, s), seed(t, s)
	_, err := c.Exec(t.Context(), "UPDATE idempotency_records SET created_at = created_at - interval '24 hours' WHERE organization_id = $1", old.organization)
	require.NoError(t, err)
	removed, whole, err := s.RemoveIdempotencyRecords(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.False(t, whole, "there are no more")
	require.Equal(t, []string{young.organization.UUID().String()}, texts(t, c, "SELECT organization_id::text FROM idempotency_records"))
}
