package webhooks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/fixture"
	"earshot/internal/webhooks"
)

// The webhook has 2,000 more deliveries than are read, one second apart. The younger half is
// pending.
func TestTheHealthOfAWebhookThatHasMuchIsOfItsNewestDeliveries(t *testing.T) {
	t.Parallel()
	o := fixture.NewOutbox(t)
	const all = webhooks.MostInHealth + 2000
	now := time.Now().Truncate(time.Second)
	_, err := o.Pool.Exec(t.Context(), `
		INSERT INTO deliveries (id, organization_id, created_at, next_attempt_at, webhook_id, event_id, event_type, status, attempt_count)
		SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000800000000000' || lpad(to_hex(i), 4, '0'))::uuid,
			$1, at, at, $2, $3, 'post.created', CASE WHEN i < $5 / 2 THEN 'pending' ELSE 'succeeded' END, 1
		FROM generate_series(0, $5 - 1) i, LATERAL (SELECT $4::timestamptz - make_interval(secs => i) AS at) a`,
		o.Organization.UUID(), o.Webhook.UUID(), o.Event.UUID(), now, all)
	require.NoError(t, err)
	h, err := webhooks.WebhookHealth(o.Ctx, o.Store, o.Webhook, now.Add(-24*time.Hour))
	require.NoError(t, err)
	require.Equal(t, webhooks.MostInHealth, h.Attempts)
	require.Equal(t, webhooks.MostInHealth-all/2, h.Delivered)
	require.Equal(t, all/2, h.Pending)
	require.True(t, h.Since.Equal(now.Add(-(webhooks.MostInHealth-1)*time.Second)), h.Since)
	require.True(t, h.OldestPendingAt.Equal(now.Add(-(all/2-1)*time.Second)), h.OldestPendingAt)
}
