package change

import (
	"context"
	"net/url"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Record encodes an event. All events of a change are written by one statement that is sent with
// the commit, with one delivery for each enabled webhook that subscribes. If the feed is off, an
// event without a subscriber is not written.
//
// The statement locks the organization's event counter, and other changes with events wait for it
// until the commit. The payloads are in memory until then: a change records a few hundred events of
// some kilobytes, or fewer large ones. Work on more rows is cut into changes of that size.
func (c *Change) Record(t event.Type, p event.Payload) error {
	_, err := c.record(Event{Type: t, Payload: p})
	return err
}

// record is Record for an event with a time of its own. A zero time is the end of the transaction.
func (c *Change) record(e Event) (publicid.Event, error) {
	id := publicid.NewEvent()
	payload, err := event.Freeze(e.Type, c.Caller.Organization.ID, e.Payload)
	if err != nil {
		return id, err
	}
	c.recorded = append(c.recorded, eventRow{ID: id, Type: string(e.Type), At: e.At, Payload: payload})
	return id, nil
}

// finish writes the change's audit lines. It returns the rows for the commit.
func (c *Change) finish(ctx context.Context, answers []keptAnswer) (atCommit, error) {
	for _, a := range c.audited {
		if err := c.writeAudit(ctx, a); err != nil {
			return atCommit{}, err
		}
	}
	at := postgres.Now()
	for i := range c.recorded {
		if c.recorded[i].At.IsZero() {
			c.recorded[i].At = at
		}
	}
	return atCommit{Events: c.recorded, SubscribedOnly: c.settings.SubscribedOnly, Answers: answers}, nil
}

// pending is a delivery that the commit made.
func pending(of publicid.Organization, d deliveryRow) PendingDelivery {
	return PendingDelivery{ID: d.ID, Webhook: d.Webhook, Organization: of, EventType: d.EventType, Host: HostOf(d.URL)}
}

// Freeze encodes and inserts an event, and returns its id.
func (c *Change) Freeze(ctx context.Context, t event.Type, p event.Payload) (publicid.Event, error) {
	payload, err := event.Freeze(t, c.Caller.Organization.ID, p)
	if err != nil {
		return publicid.Event{}, err
	}
	id := publicid.NewEvent()
	if err := c.Event.Create().SetID(id).SetType(string(t)).SetPayload(payload).Exec(ctx); err != nil {
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
