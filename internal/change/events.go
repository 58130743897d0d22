package change

import (
	"context"
	"net/url"
	"time"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqljson"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/webhook"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Record freezes an event and writes it with one delivery row for each enabled
// webhook that subscribes to it, in the transaction of the change that caused
// it. One that nobody subscribes to is for the feed, so it isn't written where that is off.
func (c *Change) Record(ctx context.Context, t event.Type, p event.Payload) error {
	// Locked, because a webhook that is deleted before its delivery is inserted
	// would fail the whole change.
	hooks, err := c.Webhook.Query().
		Where(webhook.Enabled(true), func(s *sql.Selector) {
			s.Where(sqljson.ValueContains(webhook.FieldEvents, string(t)))
		}).
		ForShare(store.KeyShare).
		Select(webhook.FieldID, webhook.FieldURL).
		All(ctx)
	if err != nil {
		return errors.Wrap(err, "load webhooks")
	}
	if len(hooks) == 0 && c.subscribedOnly {
		return nil
	}
	recorded, err := c.Freeze(ctx, t, p)
	if err != nil {
		return err
	}
	if len(hooks) == 0 {
		return nil
	}
	at := store.Now()
	rows := make([]*db.DeliveryCreate, len(hooks))
	for i, w := range hooks {
		rows[i] = c.Send(w, publicid.NewDelivery(), recorded, string(t), at)
	}
	if err := c.Delivery.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "insert the deliveries")
	}
	return nil
}

// Freeze inserts an event with the bytes that its deliveries carry.
func (c *Change) Freeze(ctx context.Context, t event.Type, p event.Payload) (publicid.Event, error) {
	recorded := publicid.NewEvent()
	payload, err := event.Freeze(t, c.Caller.Organization.ID, p)
	if err != nil {
		return recorded, err
	}
	if err := c.Event.Create().SetID(recorded).SetType(string(t)).SetPayload(payload).Exec(ctx); err != nil {
		return recorded, errors.Wrap(err, "insert the event")
	}
	return recorded, nil
}

// Send is a delivery to be inserted, due at once, which is dispatched after the
// commit.
func (c *Change) Send(
	to *db.Webhook, id publicid.Delivery, of publicid.Event, eventType string, at time.Time,
) *db.DeliveryCreate {
	c.deliveries = append(c.deliveries, PendingDelivery{
		ID: id, Webhook: to.ID, Organization: c.Caller.Organization.ID, EventType: eventType, Host: HostOf(to.URL),
	})
	return c.Delivery.Create().
		SetID(id).SetWebhookID(to.ID).SetEventID(of).SetEventType(eventType).SetCreatedAt(at).SetNextAttemptAt(at)
}

// OriginOf is a URL as its row shows it: scheme, host and port.
func OriginOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// HostOf is the part of a URL that operators may see.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
