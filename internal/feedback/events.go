package feedback

import (
	"context"
	"net/url"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqljson"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/webhook"
	"earshot/internal/event"
	"earshot/internal/publicid"
)

// record freezes an event and writes it with one delivery row for each enabled
// webhook that subscribes to it, in the transaction of the change that caused
// it. An event that nobody subscribes to has no reader and isn't written.
func (c *change) record(ctx context.Context, t event.Type, p event.Payload) error {
	// Locked, because a webhook that is deleted before its delivery is inserted
	// would fail the whole change.
	hooks, err := c.Webhook.Query().
		Where(webhook.Enabled(true), func(s *sql.Selector) {
			s.Where(sqljson.ValueContains(webhook.FieldEvents, string(t)))
		}).
		ForShare(keyShare).
		Select(webhook.FieldID, webhook.FieldURL).
		All(ctx)
	if err != nil {
		return errors.Wrap(err, "load webhooks")
	}
	if len(hooks) == 0 {
		return nil
	}
	organization := c.caller.Organization.ID
	payload, err := event.Freeze(t, organization, p)
	if err != nil {
		return err
	}
	recorded := publicid.NewEvent()
	if err := c.Event.Create().SetID(recorded).SetType(string(t)).SetPayload(payload).Exec(ctx); err != nil {
		return errors.Wrap(err, "insert the event")
	}
	at := now()
	rows := make([]*db.DeliveryCreate, len(hooks))
	for i, w := range hooks {
		id := publicid.NewDelivery()
		rows[i] = c.Delivery.Create().
			SetID(id).SetWebhookID(w.ID).SetEventID(recorded).SetEventType(string(t)).
			SetCreatedAt(at).SetNextAttemptAt(at)
		c.deliveries = append(c.deliveries, Dispatch{
			ID: id, Webhook: w.ID, Organization: organization, EventType: string(t), Host: hostOf(w.URL),
		})
	}
	if err := c.Delivery.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "insert the deliveries")
	}
	return nil
}

// hostOf is the part of a URL that operators may see.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
