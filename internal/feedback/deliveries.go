package feedback

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/attempt"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	catalogue "earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// The specification's page limit of deliveries, and the usual page.
const (
	maxDeliveryPage = 200
	deliveryPage    = 50
)

// DeliveryQuery filters the log of a webhook.
type DeliveryQuery struct {
	PageQuery
	Status, EventType *string
	Since             *time.Time
}

// Deliveries lists a webhook's deliveries, newest first.
func (s *Service) Deliveries(ctx context.Context, of publicid.Webhook, q DeliveryQuery) (Page[*db.Delivery], error) {
	var bad problem.Fields
	limit := q.limit(&bad, deliveryPage, maxDeliveryPage)
	last := after[publicid.Delivery](&bad, "deliveries", q.PageQuery)
	if q.Status != nil && delivery.StatusValidator(delivery.Status(*q.Status)) != nil {
		bad.Add("status", "enum", "must be pending, succeeded or failed")
	}
	if q.EventType != nil && !slices.Contains(catalogue.Types, catalogue.Type(*q.EventType)) {
		bad.Add("eventType", "enum", "is not an event; the events are %s", eventNames())
	}
	if err := bad.Err(); err != nil {
		return Page[*db.Delivery]{}, err
	}
	if _, err := s.Webhook(ctx, of); err != nil {
		return Page[*db.Delivery]{}, err
	}
	query := s.store.Client().Delivery.Query().
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
		query.Where(delivery.CreatedAtGTE(*q.Since))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return Page[*db.Delivery]{}, errors.Wrap(err, "list deliveries")
	}
	return page("deliveries", rows, limit, func(d *db.Delivery) string { return d.ID.String() }), nil
}

// DeliveryDetail is a delivery with the bytes that it carries and every attempt.
type DeliveryDetail struct {
	*db.Delivery
	Payload  []byte
	Attempts []*db.Attempt
}

// Delivery loads one delivery of a webhook.
func (s *Service) Delivery(ctx context.Context, of publicid.Webhook, id publicid.Delivery) (*DeliveryDetail, error) {
	client := s.store.Client()
	found, err := client.Delivery.Query().Where(delivery.ID(id), delivery.WebhookID(of)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("delivery")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the delivery")
	}
	d := &DeliveryDetail{Delivery: found}
	happened, err := client.Event.Query().Where(event.ID(found.EventID)).Only(ctx)
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
