package webhooks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

func TestTheHealthOfAWebhook(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"has nothing to tell of one without deliveries":          healthOfNone,
		"counts deliveries of the last day, and their durations": healthOfADay,
		"counts pending deliveries of any age":                   healthOfPending,
		"has no time to delivery if nothing was delivered":       healthOfFailing,
		"shows a streak and a webhook that is disabled":          healthOfDisabled,
	})
}

// past makes a delivery whose row and id are this old, and then applies change.
func (n *tenant) past(t *testing.T, of string, ago time.Duration, change func(at time.Time, d *db.DeliveryCreate)) time.Time {
	t.Helper()
	hook, err := publicid.Parse[publicid.Webhook](of)
	require.NoError(t, err)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	at := time.Now().Add(-ago).Truncate(time.Microsecond)
	happened := client.Event.Create().SetType("post.created").SetPayload([]byte("{}")).SetCreatedAt(at).SaveX(ctx)
	d := client.Delivery.Create().SetID(fixture.IDAt(publicid.DeliveryAt, at)).SetWebhookID(hook).SetEventID(happened.ID).
		SetEventType("post.created").SetCreatedAt(at)
	change(at, d)
	d.ExecX(ctx)
	return at
}

func (n *tenant) health(t *testing.T, hook string) object {
	t.Helper()
	return n.Get(t, "/v1/webhooks/"+hook+"/health")
}

func healthOfNone(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	before := time.Now().Add(-24 * time.Hour)
	h := n.health(t, hook)
	since, err := time.Parse(time.RFC3339Nano, h["since"].(string))
	require.NoError(t, err)
	require.False(t, since.Before(before.Truncate(time.Microsecond)) || since.After(time.Now().Add(-24*time.Hour)))
	delete(h, "since")
	none, zero := object{"p50": nil, "p95": nil}, json.Number("0")
	require.Equal(t, object{
		"webhookId": hook, "enabled": true, "disabledAt": nil, "disabledReason": nil, "consecutiveFailures": zero,
		"delivered": zero, "failed": zero, "attempts": zero, "attemptDurationMs": none, "timeToDeliveryMs": none,
		"pending": zero, "oldestPendingAt": nil,
	}, h)
}

func healthOfADay(t *testing.T, n *tenant) {
	hook, other := n.Listen(t), n.Listen(t)
	succeeded := func(took, until time.Duration) func(time.Time, *db.DeliveryCreate) {
		return func(at time.Time, d *db.DeliveryCreate) {
			d.SetStatus(delivery.StatusSucceeded).SetAttemptCount(1).SetDurationMs(int(took.Milliseconds())).SetDeliveredAt(at.Add(until))
		}
	}
	for i := range 20 {
		n.past(t, hook, time.Duration(i+1)*time.Minute, succeeded(time.Duration(i+1)*10*time.Millisecond, time.Duration(i+1)*time.Second))
	}
	n.past(t, hook, 23*time.Hour, func(at time.Time, d *db.DeliveryCreate) {
		d.SetStatus(delivery.StatusFailed).SetAttemptCount(5).SetDurationMs(9000).SetFailedAt(at.Add(time.Hour))
	})
	n.past(t, hook, 25*time.Hour, succeeded(time.Hour, 25*time.Hour-time.Second)) // delivered within the day
	n.past(t, other, 2*time.Hour, succeeded(time.Hour, time.Hour))
	h := n.health(t, hook)
	require.Equal(t, json.Number("20"), h["delivered"])
	require.Equal(t, json.Number("1"), h["failed"])
	require.Equal(t, json.Number("25"), h["attempts"])
	// The 11th and 20th of 21 durations, and the 10th and 19th of 20 times to delivery.
	require.Equal(t, object{"p50": json.Number("110"), "p95": json.Number("200")}, h["attemptDurationMs"])
	require.Equal(t, object{"p50": json.Number("10000"), "p95": json.Number("19000")}, h["timeToDeliveryMs"])
	require.Equal(t, json.Number("0"), h["pending"])
}

func healthOfPending(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	// The next attempt is far in the future, so the worker makes none.
	pending := func(_ time.Time, d *db.DeliveryCreate) {
		d.SetNextAttemptAt(time.Now().Add(time.Hour)).SetAttemptCount(1)
	}
	n.past(t, hook, time.Hour, pending)
	oldest := n.past(t, hook, 49*time.Hour, pending)
	h := n.health(t, hook)
	require.Equal(t, json.Number("2"), h["pending"])
	require.Equal(t, json.Number("1"), h["attempts"], "those of a day")
	at, err := time.Parse(time.RFC3339Nano, h["oldestPendingAt"].(string))
	require.NoError(t, err)
	require.True(t, oldest.Equal(at), at)
}

func healthOfFailing(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	n.past(t, hook, time.Hour, func(at time.Time, d *db.DeliveryCreate) {
		d.SetStatus(delivery.StatusFailed).SetAttemptCount(5).SetDurationMs(9000).SetFailedAt(at.Add(time.Minute))
	})
	n.past(t, hook, time.Minute, func(_ time.Time, d *db.DeliveryCreate) { d.SetNextAttemptAt(time.Now().Add(time.Hour)) })
	require.Equal(t, object{"p50": nil, "p95": nil}, n.health(t, hook)["timeToDeliveryMs"])
}

func healthOfDisabled(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	id, err := publicid.Parse[publicid.Webhook](hook)
	require.NoError(t, err)
	n.App.Store.Client().Webhook.UpdateOneID(id).SetConsecutiveFailures(49).ExecX(n.Context(t.Context()))
	require.Equal(t, json.Number("49"), n.health(t, hook)["consecutiveFailures"])
	changed := n.Patch(t, "/v1/webhooks/"+hook, object{"enabled": false})
	h := n.health(t, hook)
	for _, name := range []string{"enabled", "disabledAt", "disabledReason", "consecutiveFailures"} {
		require.Equal(t, changed[name], h[name], name)
	}
}
