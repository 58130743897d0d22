package api

import (
	"context"
	"maps"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

func (s *server) CreateWebhook(ctx context.Context, r gen.CreateWebhookRequestObject) (gen.CreateWebhookResponseObject, error) {
	names := eventNames(r.Body.Events)
	w, err := s.Webhooks.RegisterWebhook(ctx, webhooks.WebhookInput{
		URL: &r.Body.URL, Events: &names, Description: r.Body.Description, Metadata: given(r.Body.Metadata),
		MaxPerSecond: r.Body.MaxPerSecond,
	}, request(ctx, http.StatusCreated, createdWebhook))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "webhookId", w.ID)
	return createdWebhook(w), nil
}

func createdWebhook(w *webhooks.WithSecret) gen.CreateWebhook201JSONResponse {
	return gen.CreateWebhook201JSONResponse{Data: webhookWithSecret(w)}
}

func (s *server) ListWebhooks(ctx context.Context, r gen.ListWebhooksRequestObject) (gen.ListWebhooksResponseObject, error) {
	p, err := s.Webhooks.Webhooks(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListWebhooks200JSONResponse{Data: each(p.Items, webhook), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) GetWebhook(ctx context.Context, r gen.GetWebhookRequestObject) (gen.GetWebhookResponseObject, error) {
	id := publicid.Read[publicid.Webhook](r.WebhookID)
	w, err := s.Webhooks.Webhook(ctx, id)
	if err != nil {
		return nil, err
	}
	return foundWebhook(w), nil
}

func foundWebhook(w *db.Webhook) gen.GetWebhook200JSONResponse {
	return gen.GetWebhook200JSONResponse{Data: webhook(w)}
}

func (s *server) UpdateWebhook(ctx context.Context, r gen.UpdateWebhookRequestObject) (gen.UpdateWebhookResponseObject, error) {
	id := publicid.Read[publicid.Webhook](r.WebhookID)
	in := webhooks.WebhookInput{
		URL: r.Body.URL, Enabled: r.Body.Enabled, Description: r.Body.Description, Metadata: given(r.Body.Metadata),
		MaxPerSecond: r.Body.MaxPerSecond,
	}
	if r.Body.Events != nil {
		names := eventNames(*r.Body.Events)
		in.Events = &names
	}
	w, err := s.Webhooks.UpdateWebhook(ctx, id, in, conditional(ctx, http.StatusOK, foundWebhook, foundWebhook))
	if err != nil {
		return nil, err
	}
	return gen.UpdateWebhook200JSONResponse(foundWebhook(w)), nil
}

func (s *server) RotateWebhookSecret(ctx context.Context, r gen.RotateWebhookSecretRequestObject) (gen.RotateWebhookSecretResponseObject, error) {
	id := publicid.Read[publicid.Webhook](r.WebhookID)
	found := func(w *webhooks.WithSecret) gen.GetWebhook200JSONResponse { return foundWebhook(w.Webhook) }
	w, err := s.Webhooks.RotateSecret(ctx, id, r.Body.OverlapSeconds, conditional(ctx, http.StatusOK, rotatedSecret, found))
	if err != nil {
		return nil, err
	}
	return rotatedSecret(w), nil
}

func rotatedSecret(w *webhooks.WithSecret) gen.RotateWebhookSecret200JSONResponse {
	return gen.RotateWebhookSecret200JSONResponse{Data: webhookWithSecret(w)}
}

func (s *server) GetWebhookHealth(ctx context.Context, r gen.GetWebhookHealthRequestObject) (gen.GetWebhookHealthResponseObject, error) {
	w, h, err := s.Webhooks.Health(ctx, publicid.Read[publicid.Webhook](r.WebhookID))
	if err != nil {
		return nil, err
	}
	return gen.GetWebhookHealth200JSONResponse{Data: gen.WebhookHealth{
		WebhookID: w.ID.String(), Enabled: w.Enabled, DisabledAt: orNull(w.DisabledAt), DisabledReason: orNull((*string)(w.DisabledReason)),
		ConsecutiveFailures: w.ConsecutiveFailures, Since: h.Since, Delivered: h.Delivered, Failed: h.Failed, Attempts: h.Attempts,
		AttemptDurationMs: percentiles(h.AttemptDuration.P50, h.AttemptDuration.P95),
		TimeToDeliveryMs:  percentiles(h.TimeToDelivery.P50, h.TimeToDelivery.P95),
		Pending:           h.Pending, OldestPendingAt: orNull(h.OldestPendingAt),
	}}, nil
}

func percentiles(p50, p95 *int) gen.Percentiles {
	return gen.Percentiles{P50: orNull(p50), P95: orNull(p95)}
}

func (s *server) DeleteWebhook(ctx context.Context, r gen.DeleteWebhookRequestObject) (gen.DeleteWebhookResponseObject, error) {
	id := publicid.Read[publicid.Webhook](r.WebhookID)
	gone := func(*db.Webhook) gen.DeleteWebhook200JSONResponse {
		return gen.DeleteWebhook200JSONResponse{Data: deleted(id)}
	}
	if err := s.Webhooks.DeleteWebhook(ctx, id, conditional(ctx, http.StatusOK, gone, foundWebhook)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func eventNames(types []gen.EventType) []string {
	return each(types, func(t gen.EventType) string { return string(t) })
}

// given returns nil if the metadata is missing.
func given(metadata *gen.WebhookMetadata) map[string]string {
	if metadata == nil {
		return nil
	}
	return *metadata
}

func webhookWithSecret(w *webhooks.WithSecret) gen.WebhookWithSecret {
	return gen.WebhookWithSecret{WebhookFields: webhook(w.Webhook), Secret: w.Secret}
}

func webhook(w *db.Webhook) gen.WebhookFields {
	metadata := gen.WebhookMetadata{}
	maps.Copy(metadata, w.Metadata)
	return gen.WebhookFields{
		ID: w.ID.String(), OrganizationID: w.OrganizationID.String(), URL: w.URL,
		Events:      each(w.Events, func(e string) gen.EventType { return gen.EventType(e) }),
		Description: orNull(w.Description), Metadata: metadata, MaxPerSecond: orNull(w.MaxPerSecond),
		Enabled: w.Enabled, DisabledAt: orNull(w.DisabledAt), DisabledReason: orNull((*string)(w.DisabledReason)),
		ConsecutiveFailures: w.ConsecutiveFailures, CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
	}
}
