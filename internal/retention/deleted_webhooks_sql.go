package retention

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file removes the rows of deleted webhooks of all organizations, page by page and without
// waiting for locks, like retention.go. The webhook's own row goes last, so that a run after a kill
// finds it again.

// DeletedPlace is the progress of the removal: the last completed webhook, and a delivery of the
// next one. The zero value is the beginning. A webhook that is deleted meanwhile and comes before
// the place is left for the next run.
type DeletedPlace struct {
	Webhook  publicid.Webhook
	Delivery publicid.Delivery
}

const deletedWebhookSQL = `SELECT id FROM webhooks WHERE deleted_at IS NOT NULL AND id > $1 ORDER BY id LIMIT 1`

const deletedDeliveriesSQL = `
WITH page AS (
  SELECT id FROM deliveries WHERE webhook_id = $1 AND id > $2 ORDER BY id LIMIT 500
), gone AS (
  DELETE FROM deliveries WHERE id IN (
    SELECT d.id FROM deliveries d JOIN page USING (id) FOR UPDATE OF d SKIP LOCKED
  ) RETURNING id
)
SELECT (SELECT count(*) FROM gone), (SELECT id FROM page ORDER BY id OFFSET 499)`

// A delivery that another transaction has locked keeps the webhook until the next run. The
// webhook's recoveries are deleted with it.
const deletedSQL = `
DELETE FROM webhooks WHERE id = $1 AND deleted_at IS NOT NULL AND NOT EXISTS (SELECT FROM deliveries WHERE webhook_id = $1)`

// RemoveDeleted removes one page of deliveries, with their attempts, of a deleted webhook, and the
// webhook when none are left. It returns the numbers of removed rows and the place to continue at.
// A nil place means that nothing is left.
func RemoveDeleted(ctx context.Context, s *postgres.DB, from DeletedPlace) (deliveries, webhooks int, next *DeletedPlace, err error) {
	var hook publicid.Webhook
	err = s.Across(ofAll).QueryRow(ctx, deletedWebhookSQL, from.Webhook.UUID()).Scan(&hook)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, nil, nil
	}
	if err != nil {
		return 0, 0, nil, errors.Wrap(err, "look for webhooks that were deleted")
	}
	var last *publicid.Delivery
	err = postgres.Again(func() error {
		return s.Across(ofAll).QueryRow(ctx, deletedDeliveriesSQL, hook.UUID(), from.Delivery.UUID()).Scan(&deliveries, &last)
	})
	if err != nil {
		return 0, 0, nil, errors.Wrap(err, "remove the deliveries of a webhook that was deleted")
	}
	if last != nil {
		return deliveries, 0, &DeletedPlace{Webhook: from.Webhook, Delivery: *last}, nil
	}
	err = postgres.Again(func() error {
		done, err := s.Across(ofAll).Exec(ctx, deletedSQL, hook.UUID())
		webhooks = int(done.RowsAffected())
		return err
	})
	if err != nil {
		return deliveries, 0, nil, errors.Wrap(err, "remove a webhook that was deleted")
	}
	return deliveries, webhooks, &DeletedPlace{Webhook: hook}, nil
}
