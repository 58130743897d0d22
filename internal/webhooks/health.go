package webhooks

import (
	"context"
	"time"

	"earshot/ent/db"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// healthWindow is how far back a webhook's health goes.
const healthWindow = 24 * time.Hour

// Health tells how a webhook did in the last 24 hours. The webhook comes without its whole URL.
func (s *Service) Health(ctx context.Context, id publicid.Webhook) (*db.Webhook, store.WebhookHealth, error) {
	hook, err := s.loadWebhook(ctx, id)
	if err != nil {
		return nil, store.WebhookHealth{}, err
	}
	health, err := s.store.WebhookHealth(ctx, hook.OrganizationID, id, store.Now().Add(-healthWindow))
	return hook, health, err
}
