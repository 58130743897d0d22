package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

func (s *server) ListDeliveries(ctx context.Context, r gen.ListDeliveriesRequestObject) (gen.ListDeliveriesResponseObject, error) {
	of := publicid.Read[publicid.Webhook](r.WebhookID)
	p, err := s.Webhooks.Deliveries(ctx, of, webhooks.DeliveryQuery{
		Query:  pageQuery(r.Params.Cursor, r.Params.Limit),
		Status: (*string)(r.Params.Status), EventType: (*string)(r.Params.EventType), Since: r.Params.Since,
	})
	if err != nil {
		return nil, err
	}
	return gen.ListDeliveries200JSONResponse{Data: each(p.Items, delivery), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) GetDelivery(ctx context.Context, r gen.GetDeliveryRequestObject) (gen.GetDeliveryResponseObject, error) {
	of, id := publicid.Read[publicid.Webhook](r.WebhookID), publicid.Read[publicid.Delivery](r.DeliveryID)
	d, err := s.Webhooks.Delivery(ctx, of, id)
	if err != nil {
		return nil, err
	}
	return gen.GetDelivery200JSONResponse{Data: gen.DeliveryDetail{
		DeliveryFields: delivery(d.Delivery), Payload: d.Payload, Attempts: each(d.Attempts, attempt),
	}}, nil
}

func (s *server) ReplayDelivery(ctx context.Context, r gen.ReplayDeliveryRequestObject) (gen.ReplayDeliveryResponseObject, error) {
	of, id := publicid.Read[publicid.Webhook](r.WebhookID), publicid.Read[publicid.Delivery](r.DeliveryID)
	d, err := s.Webhooks.ReplayDelivery(ctx, of, id, request(ctx, http.StatusCreated, replayedDelivery))
	if err != nil {
		return nil, err
	}
	return replayedDelivery(d), nil
}

func replayedDelivery(d *db.Delivery) gen.ReplayDelivery201JSONResponse {
	return gen.ReplayDelivery201JSONResponse{Data: delivery(d)}
}

func (s *server) TestWebhook(ctx context.Context, r gen.TestWebhookRequestObject) (gen.TestWebhookResponseObject, error) {
	of := publicid.Read[publicid.Webhook](r.WebhookID)
	d, err := s.Webhooks.TryWebhook(ctx, of, request(ctx, http.StatusCreated, testDelivery))
	if err != nil {
		return nil, err
	}
	return testDelivery(d), nil
}

func testDelivery(d *db.Delivery) gen.TestWebhook201JSONResponse {
	return gen.TestWebhook201JSONResponse{Data: delivery(d)}
}

func delivery(d *db.Delivery) gen.DeliveryFields {
	return gen.DeliveryFields{
		ID: d.ID.String(), WebhookID: d.WebhookID.String(), EventID: d.EventID.String(),
		EventType: gen.DeliveryEventType(d.EventType), Status: gen.DeliveryStatus(d.Status), AttemptCount: d.AttemptCount,
		NextAttemptAt: orNull(d.NextAttemptAt), LastAttemptAt: orNull(d.LastAttemptAt),
		LastResponseStatus: orNull(d.LastResponseStatus), LastError: orNull(d.LastError),
		DurationMs: orNull(d.DurationMs), DeliveredAt: orNull(d.DeliveredAt), FailedAt: orNull(d.FailedAt),
		ReplayOf: idOrNull(d.ReplayOf), CreatedAt: d.CreatedAt,
	}
}

func attempt(a *db.Attempt) gen.DeliveryAttempt {
	return gen.DeliveryAttempt{
		Number: a.Number, StartedAt: a.StartedAt, DurationMs: a.DurationMs,
		ResponseStatus: orNull(a.ResponseStatus), ResponseBody: textOrNull(a.ResponseBody), Error: orNull(a.Error),
	}
}
