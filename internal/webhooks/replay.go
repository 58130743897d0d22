package webhooks

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/webhook"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// ReplayDelivery sends the payload of a delivery again, as a new delivery (specification, Replay
// rules). It returns problem.Conflict if the webhook is disabled or no longer subscribes to the
// event.
func (s *Service) ReplayDelivery(
	ctx context.Context, of publicid.Webhook, id publicid.Delivery, q change.Request[*db.Delivery],
) (*db.Delivery, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Delivery, error) {
		// The lock prevents the retention from removing the delivery and its event in the meantime.
		// It comes before the webhook's lock, in the same order as in the deletion of a webhook.
		old, missing := onlyDelivery(ctx, c.Delivery.Query().Where(delivery.ID(id), delivery.WebhookID(of)).ForShare(postgres.KeyShare))
		if missing != nil && !problem.Is(missing, problem.NotFound) {
			return nil, missing
		}
		hook, err := lockWebhook(ctx, c, of, postgres.KeyShare)
		if err != nil {
			return nil, err
		}
		if missing != nil {
			return nil, missing
		}
		if err := mustTake(hook, &old.EventType); err != nil {
			return nil, err
		}
		made, err := c.Send(hook, publicid.NewDelivery(), old.EventID, old.EventType, postgres.Now()).SetReplayOf(id).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "insert the delivery")
		}
		c.Audit("replayDelivery", id)
		return made, nil
	})
}

// ReplayAs is ReplayDelivery for an operator, and needs only the delivery's id. It acts for the
// service in the delivery's organization, in any billing state. The parameter as is the id
// of the new delivery. If a delivery with this id exists, the replay was done before and ReplayAs
// does nothing.
func (s *Service) ReplayAs(ctx context.Context, id, as publicid.Delivery) error {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return problem.New(problem.NotFound, "There is no such delivery.")
	}
	if err != nil {
		return err
	}
	old, err := onlyDelivery(ctx, s.store.Client().Delivery.Query().Where(delivery.ID(id)))
	if problem.Is(err, problem.NotFound) {
		return problem.New(problem.NotFound, "There is no such delivery.")
	}
	if err != nil {
		return err
	}
	return s.changes.RunForService(ctx, old.OrganizationID, func(ctx context.Context, c *change.Change) error {
		done, err := postgres.Exists(ctx, c.Delivery.Query().Where(delivery.ID(as)))
		if err != nil {
			return errors.Wrap(err, "look for the replay")
		}
		if done {
			return nil
		}
		hook, err := lockWebhook(ctx, c, old.WebhookID, postgres.KeyShare)
		if err != nil {
			return err
		}
		if err := mustTake(hook, &old.EventType); err != nil {
			return err
		}
		// The creation time is that of the id, because lists sort by the id and filter by the time.
		made, err := postgres.Inserted(c.Send(hook, as, old.EventID, old.EventType, as.Time()).SetReplayOf(id).
			OnConflict(sql.DoNothing()).Exec(ctx))
		if made {
			c.Audit("replayDelivery", id)
		}
		return err
	})
}

// mustTake returns problem.Conflict if the webhook doesn't take this event.
func mustTake(hook *db.Webhook, eventType *string) error {
	if reason := rejection(hook, eventType); reason != nil {
		return reason.Problem()
	}
	return nil
}

// rejection returns the reason for which the webhook doesn't take this event. With a nil eventType,
// it returns the reason for which the webhook takes no event at all. It is nil if there is no
// reason. A test needs no subscription.
func rejection(hook *db.Webhook, eventType *string) *problem.Reason {
	switch {
	case !hook.Enabled:
		return problem.WebhookDisabled
	case eventType != nil && *eventType != string(event.WebhookTest) && !slices.Contains(hook.Events, *eventType):
		return problem.NotSubscribed
	}
	return nil
}

// lockWebhook returns problem.NotFound if there is no such webhook.
func lockWebhook(ctx context.Context, c *change.Change, id publicid.Webhook, lock sql.LockOption) (*db.Webhook, error) {
	hook, err := c.Webhook.Query().Where(webhook.ID(id)).ForShare(lock).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("webhook")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the webhook")
	}
	return hook, nil
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
