package workflows_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// clock records the times of requests.
type clock struct {
	mu    sync.Mutex
	times []time.Time
}

func (c *clock) answer(int, testkit.Received) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Now())
	return http.StatusOK
}

// since returns the times between a moment and the requests.
func (c *clock) since(began time.Time) (all []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.times {
		all = append(all, at.Sub(began))
	}
	return all
}

// sentIDs returns the deliveries in the order of their arrival.
func sentIDs(all []testkit.Received) (ids []string) {
	for _, got := range all {
		ids = append(ids, got.DeliveryID())
	}
	return ids
}

func TestAThrottledWebhookGetsNoMoreThanItsLimitFromTwoWorkersAndEverythingOnce(t *testing.T) {
	t.Parallel()
	database, engine := testkit.Database(t), testkit.Namespace(t)
	b := setup(t, apptest.Options{Worker: true, DatabaseURL: database, Temporal: &engine})
	apptest.Start(t, apptest.Options{Worker: true, DatabaseURL: database, Temporal: &engine})
	var receiver clock
	b.receiver.Answer(receiver.answer)
	const limit, events = 5, 20
	b.tenant.Patch(t, "/v1/webhooks/"+b.webhook, map[string]any{"maxPerSecond": limit})

	began := time.Now()
	for range events {
		b.post(t)
	}
	ids := sentIDs(b.receiver.Await(t, events))
	// A request may arrive late, but never before it has its token.
	for i, after := range receiver.since(began) {
		require.LessOrEqual(t, float64(i+1), limit*(1+after.Seconds()), "a full bucket, and what has flown into it until then")
	}
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), events, "each once")
	b.rows(t, "status = 'succeeded' AND attempt_count = 1", events, events)
}

func TestThrottledDeliveriesArriveWhenTheThrottleIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.tenant.Patch(t, "/v1/webhooks/"+b.webhook, map[string]any{"maxPerSecond": 1})
	const events = 8
	for range events {
		b.post(t)
	}
	b.rows(t, "attempt_count = 0 AND next_attempt_at > now() AND workflow_id IS NOT NULL", 1, events)
	b.tenant.Patch(t, "/v1/webhooks/"+b.webhook, map[string]any{"maxPerSecond": nil})
	ids := sentIDs(b.receiver.Await(t, events))
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), events)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		health := b.tenant.Get(t, "/v1/webhooks/"+b.webhook+"/health")
		require.Equal(c, json.Number("0"), health["pending"])
	}, testkit.Wait, testkit.Tick)
}

func TestANewDeliverySkipsTheLineAfterTheThrottleIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.tenant.Patch(t, "/v1/webhooks/"+b.webhook, map[string]any{"maxPerSecond": 1})
	b.post(t)
	b.receiver.Await(t, 1)
	_, err := b.app.Pool.Exec(t.Context(), "UPDATE webhook_throttles SET line_until = now() + interval '5 minutes' WHERE webhook_id = $1",
		publicid.Read[publicid.Webhook](b.webhook).UUID())
	require.NoError(t, err)
	const waits = "attempt_count = 0 AND next_attempt_at > now() + interval '1 minute' AND workflow_id IS NOT NULL"
	b.post(t)
	b.rows(t, waits, 1, 1)
	b.tenant.Patch(t, "/v1/webhooks/"+b.webhook, map[string]any{"maxPerSecond": nil})
	b.post(t)
	require.Len(t, b.receiver.Await(t, 2), 2)
	b.rows(t, waits, 1, 1)
	b.rows(t, "status = 'succeeded'", 2, 2)
}
