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

// recorded is an event that is not written yet.
type recorded struct {
	event   event.Type
	payload []byte
}

// Record encodes an event. The event is written at the end of the transaction, because its insert
// locks the organization's event counter until the commit.
func (c *Change) Record(t event.Type, p event.Payload) error {
	payload, err := event.Freeze(t, c.Caller.Organization.ID, p)
	if err != nil {
		return err
	}
	c.recorded = append(c.recorded, recorded{t, payload})
	return nil
}

// make runs fn and then writes the change's audit lines and events.
func (c *Change) make(ctx context.Context, fn func(c *Change) error) error {
	if err := fn(c); err != nil {
		return err
	}
	for _, a := range c.audited {
		if err := c.writeAudit(ctx, a); err != nil {
			return err
		}
	}
	for _, r := range c.recorded {
		if err := c.write(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// write writes an event with one delivery row for each enabled webhook that subscribes to it. An
// event without a subscriber is written for the feed only. If the feed is off, it is not written.
func (c *Change) write(ctx context.Context, r recorded) error {
	// Lock the webhooks: if one were deleted before its delivery is inserted, the whole change
	// would fail.
	hooks, err := c.Webhook.Query().
		Where(webhook.Enabled(true), func(s *sql.Selector) {
			s.Where(sqljson.ValueContains(webhook.FieldEvents, string(r.event)))
		}).
		ForShare(store.KeyShare).
		Select(webhook.FieldID, webhook.FieldURL).
		All(ctx)
	if err != nil {
		return errors.Wrap(err, "load webhooks")
	}
	if len(hooks) == 0 && c.settings.SubscribedOnly {
		return nil
	}
	id, err := c.insert(ctx, r)
	if err != nil {
		return err
	}
	if len(hooks) == 0 {
		return nil
	}
	at := store.Now()
	rows := make([]*db.DeliveryCreate, len(hooks))
	for i, w := range hooks {
		rows[i] = c.Send(w, publicid.NewDelivery(), id, string(r.event), at)
	}
	if err := c.Delivery.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "insert the deliveries")
	}
	return nil
}

// Freeze encodes and inserts an event, and returns its id.
func (c *Change) Freeze(ctx context.Context, t event.Type, p event.Payload) (publicid.Event, error) {
	payload, err := event.Freeze(t, c.Caller.Organization.ID, p)
	if err != nil {
		return publicid.Event{}, err
	}
	return c.insert(ctx, recorded{t, payload})
}

func (c *Change) insert(ctx context.Context, r recorded) (publicid.Event, error) {
	id := publicid.NewEvent()
	if err := c.Event.Create().SetID(id).SetType(string(r.event)).SetPayload(r.payload).Exec(ctx); err != nil {
		return id, errors.Wrap(err, "insert the event")
	}
	return id, nil
}

// Send prepares a delivery that is due immediately. It is dispatched after the commit.
func (c *Change) Send(
	to *db.Webhook, id publicid.Delivery, of publicid.Event, eventType string, at time.Time,
) *db.DeliveryCreate {
	c.deliveries = append(c.deliveries, PendingDelivery{
		ID: id, Webhook: to.ID, Organization: c.Caller.Organization.ID, EventType: eventType, Host: HostOf(to.URL),
	})
	return c.Delivery.Create().
		SetID(id).SetWebhookID(to.ID).SetEventID(of).SetEventType(eventType).SetCreatedAt(at).SetNextAttemptAt(at)
}

// OriginOf returns a URL's scheme, host and port, which its row stores in clear.
func OriginOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// HostOf returns the part of a URL that operators may see.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
