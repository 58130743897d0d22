package webhooks

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// MostInHealth is the most deliveries that WebhookHealth reads, of the recent ones and of the
// pending ones. 10,000 take 30 ms. A webhook with a million in a day would take a hundred times as
// long.
const MostInHealth = 10_000

// Health has the outcomes of a webhook's deliveries that were created since a time, and its
// pending deliveries.
type Health struct {
	Since                       time.Time
	Delivered, Failed, Attempts int
	// AttemptDuration is of the last attempt of each delivery. TimeToDelivery is from the creation
	// of each successful delivery to its success.
	AttemptDuration, TimeToDelivery percentiles
	// Pending counts the pending deliveries of any age, up to MostInHealth.
	Pending         int
	OldestPendingAt *time.Time
}

// percentiles are in milliseconds, or nil without deliveries.
type percentiles struct{ P50, P95 *int }

// The statement asks for recent deliveries as a range of the index that begins with the webhook, and
// in the order of that index. For a webhook with many deliveries, Postgres would otherwise choose an
// index that contains the deliveries of all webhooks.
const webhookHealthSQL = `
WITH recent AS MATERIALIZED (
  SELECT status, attempt_count, duration_ms, created_at,
    CASE WHEN delivered_at IS NOT NULL THEN greatest(0, round(extract(epoch FROM delivered_at - created_at) * 1000))::int END AS took
  FROM deliveries
  WHERE (webhook_id, id) >= ($2::uuid, $3::uuid) AND webhook_id <= $2 AND organization_id = $1
  ORDER BY webhook_id DESC, id DESC LIMIT $4
), waiting AS MATERIALIZED (
  SELECT id, created_at FROM deliveries
  WHERE webhook_id = $2 AND status = 'pending' AND organization_id = $1
  ORDER BY id LIMIT $4
), lasted AS (
  SELECT count(*) AS deliveries, min(created_at) AS oldest, count(*) FILTER (WHERE status = 'succeeded') AS delivered,
    count(*) FILTER (WHERE status = 'failed') AS failed, coalesce(sum(attempt_count), 0) AS attempts,
    percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms) AS attempt,
    percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY took) AS delivery
  FROM recent
)
SELECT CASE WHEN deliveries = $4 THEN oldest END, delivered, failed, attempts, attempt[1], attempt[2], delivery[1], delivery[2],
  (SELECT count(*) FROM waiting), (SELECT created_at FROM waiting ORDER BY id LIMIT 1)
FROM lasted`

// WebhookHealth reads a webhook's deliveries since a time. If there are more than MostInHealth, it
// reads the newest of them.
func WebhookHealth(
	ctx context.Context, s *postgres.DB, webhook publicid.Webhook, since time.Time,
) (h Health, err error) {
	h.Since = since
	var oldest *time.Time
	err = s.QueryRow(ctx, []any{
		&oldest, &h.Delivered, &h.Failed, &h.Attempts, &h.AttemptDuration.P50, &h.AttemptDuration.P95,
		&h.TimeToDelivery.P50, &h.TimeToDelivery.P95, &h.Pending, &h.OldestPendingAt,
	}, webhookHealthSQL, webhook.UUID(), publicid.DeliveryAt(since).UUID(), MostInHealth)
	if err != nil {
		return h, errors.Wrap(err, "look at a webhook's deliveries")
	}
	if oldest != nil {
		h.Since = *oldest
	}
	return h, nil
}
