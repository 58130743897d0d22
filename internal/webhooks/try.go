package webhooks

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// TryWebhook sends a webhook.test to one webhook, regardless of its subscriptions. It returns
// problem.Conflict if the webhook is disabled.
func (s *Service) TryWebhook(ctx context.Context, id publicid.Webhook, q change.Request[*db.Delivery]) (*db.Delivery, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Delivery, error) {
		hook, err := lockWebhook(ctx, c, id, postgres.KeyShare)
		if err != nil {
			return nil, err
		}
		if err := mustTake(hook, new(string(event.WebhookTest))); err != nil {
			return nil, err
		}
		recorded, err := c.Freeze(ctx, event.WebhookTest, &event.WebhookTestPayload{
			Webhook: event.Webhook{ID: id, CreatedAt: hook.CreatedAt},
		})
		if err != nil {
			return nil, err
		}
		made, err := c.Send(hook, publicid.NewDelivery(), recorded, string(event.WebhookTest), postgres.Now()).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "insert the delivery")
		}
		c.Audit("testWebhook", id)
		return made, nil
	})
}
