package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/webhook"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// ReplayDelivery sends the payload of a delivery once more, as a new delivery
// (specification, Replay rules). A webhook that is disabled or no longer
// subscribes to the event is problem.Conflict.
func (s *Service) ReplayDelivery(ctx context.Context, of publicid.Webhook, id publicid.Delivery) (*db.Delivery, error) {
	var made *db.Delivery
	err := s.change(ctx, func(c *change) error {
		hook, err := c.Webhook.Query().Where(webhook.ID(of)).ForShare(keyShare).Only(ctx)
		if db.IsNotFound(err) {
			return problem.Missing("webhook")
		}
		if err != nil {
			return errors.Wrap(err, "load the webhook")
		}
		// Held, so that the retention doesn't take it away with its event meanwhile.
		old, err := onlyDelivery(ctx, c.Delivery.Query().Where(delivery.ID(id), delivery.WebhookID(of)).ForShare(keyShare))
		if err != nil {
			return err
		}
		switch {
		case !hook.Enabled:
			return problem.New(problem.Conflict, "The webhook is disabled.").With("reason", "webhook_disabled")
		case !slices.Contains(hook.Events, old.EventType):
			return problem.New(problem.Conflict, "The webhook doesn't subscribe to "+old.EventType+" any more.").
				With("reason", "not_subscribed")
		}
		at := now()
		made, err = c.Delivery.Create().
			SetWebhookID(of).SetEventID(old.EventID).SetEventType(old.EventType).SetReplayOf(id).
			SetCreatedAt(at).SetNextAttemptAt(at).Save(ctx)
		if err != nil {
			return errors.Wrap(err, "insert the delivery")
		}
		c.deliveries = append(c.deliveries, Dispatch{
			ID: made.ID, Webhook: of, Organization: made.OrganizationID, EventType: old.EventType, Host: hostOf(hook.URL),
		})
		return nil
	})
	return made, err
}

func onlyDelivery(ctx context.Context, query *db.DeliveryQuery) (*db.Delivery, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("delivery")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the delivery")
	}
	return found, nil
}
