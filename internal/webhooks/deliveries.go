package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/attempt"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	"earshot/ent/db/webhook"
	catalogue "earshot/internal/event"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Page sizes of the delivery log, from the specification: the maximum and the default.
const (
	maxDeliveryPage = 200
	deliveryPage    = 50
)

// DeliveryQuery filters the log of a webhook.
type DeliveryQuery struct {
	page.Query
	Status, EventType *string
	Since             *time.Time
}

// delivered checks the event type of a filter, if the filter has one.
func delivered(bad *problem.Fields, eventType *string) {
	if eventType != nil && !slices.Contains(catalogue.Delivered, catalogue.Type(*eventType)) {
		bad.Add("eventType", "enum", "is not an event; the events are %s", eventNames(catalogue.Delivered))
	}
}

// Deliveries lists a webhook's deliveries, newest first.
func (s *Service) Deliveries(ctx context.Context, of publicid.Webhook, q DeliveryQuery) (page.Page[*db.Delivery], error) {
	var bad problem.Fields
	limit := q.Size(&bad, deliveryPage, maxDeliveryPage)
	list := page.ListOf("deliveries", of, q)
	last := page.After[publicid.Delivery](&bad, list, q.Query)
	bad.Moment("since", q.Since)
	if q.Status != nil && delivery.StatusValidator(delivery.Status(*q.Status)) != nil {
		bad.Add("status", "enum", "must be pending, succeeded or failed")
	}
	delivered(&bad, q.EventType)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Delivery]{}, err
	}
	if _, err := s.loadWebhook(ctx, of); err != nil {
		return page.Page[*db.Delivery]{}, err
	}
	query := s.store.Lists().Delivery.Query().
		Where(delivery.WebhookID(of)).Order(db.Desc(delivery.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(delivery.IDLT(*last))
	}
	if q.Status != nil {
		query.Where(delivery.StatusEQ(delivery.Status(*q.Status)))
	}
	if q.EventType != nil {
		query.Where(delivery.EventType(*q.EventType))
	}
	if q.Since != nil {
		// The id contains its creation time. The bound on the id lets the query stop there instead
		// of reading the log to its end. One minute covers clock differences and fractions of a
		// second.
		query.Where(delivery.CreatedAtGTE(*q.Since), delivery.IDGTE(publicid.DeliveryAt(q.Since.Add(-time.Minute))))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Delivery]{}, errors.Wrap(err, "list deliveries")
	}
	return page.Cut(list, rows, limit, page.ByID(func(d *db.Delivery) string { return d.ID.String() })), nil
}

// DeliveryDetail is a delivery with its payload and all its attempts.
type DeliveryDetail struct {
	*db.Delivery
	Payload  []byte
	Attempts []*db.Attempt
}

// Delivery loads one delivery of a webhook.
func (s *Service) Delivery(ctx context.Context, of publicid.Webhook, id publicid.Delivery) (*DeliveryDetail, error) {
	client := s.store.Client()
	found, err := onlyDelivery(ctx, client.Delivery.Query().
		Where(delivery.ID(id), delivery.WebhookID(of), delivery.HasWebhookWith(webhook.DeletedAtIsNil())))
	if err != nil {
		return nil, err
	}
	d := &DeliveryDetail{Delivery: found}
	happened, err := client.Event.Query().Where(event.ID(found.EventID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("delivery") // the retention has removed both in the meantime
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the event")
	}
	d.Payload = happened.Payload
	d.Attempts, err = client.Attempt.Query().
		Where(attempt.DeliveryID(id)).Order(db.Asc(attempt.FieldNumber)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the attempts")
	}
	return d, nil
}
