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

// healthTimeout is a hundred times what a look at a webhook's health takes.
const healthTimeout = 5 * time.Second

// Health tells how a webhook did in the last 24 hours. The webhook comes without its whole URL.
func (s *Service) Health(ctx context.Context, id publicid.Webhook) (*db.Webhook, store.WebhookHealth, error) {
	hook, err := s.loadWebhook(ctx, id)
	if err != nil {
		return nil, store.WebhookHealth{}, err
	}
	health, err := s.readHealth(ctx, hook)
	return hook, health, err
}

// readHealth is one read for all who ask for the webhook's health meanwhile.
func (s *Service) readHealth(ctx context.Context, hook *db.Webhook) (store.WebhookHealth, error) {
	read, err, _ := s.health.Do(hook.ID.String(), func() (any, error) {
		// It serves several requests, so none of them may cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		return s.store.WebhookHealth(ctx, hook.OrganizationID, hook.ID, store.Now().Add(-healthWindow))
	})
	if err != nil {
		return store.WebhookHealth{}, err
	}
	return read.(store.WebhookHealth), nil
}
