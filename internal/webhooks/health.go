package webhooks

import (
	"context"
	"time"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// healthWindow is the period that a webhook's health covers.
const healthWindow = 24 * time.Hour

// healthTimeout is a hundred times the usual duration of the query.
const healthTimeout = 5 * time.Second

// Health reports how a webhook did in the last 24 hours. The returned webhook has only the origin
// of its URL.
func (s *Service) Health(ctx context.Context, id publicid.Webhook) (*db.Webhook, Health, error) {
	hook, err := s.loadWebhook(ctx, id)
	if err != nil {
		return nil, Health{}, err
	}
	health, err := s.readHealth(ctx, hook)
	return hook, health, err
}

// readHealth shares one read between concurrent requests for the same webhook.
func (s *Service) readHealth(ctx context.Context, hook *db.Webhook) (Health, error) {
	read, err, _ := s.health.Do(hook.ID.String(), func() (any, error) {
		// The read serves several requests, so none of them may cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		return WebhookHealth(ctx, s.store, hook.ID, postgres.Now().Add(-healthWindow))
	})
	if err != nil {
		return Health{}, err
	}
	return read.(Health), nil
}
