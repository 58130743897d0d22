package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

func (s *server) RecoverWebhook(ctx context.Context, r gen.RecoverWebhookRequestObject) (gen.RecoverWebhookResponseObject, error) {
	of := publicid.Read[publicid.Webhook](r.WebhookID)
	made, err := s.Webhooks.RecoverWebhook(ctx, of, webhooks.NewRecovery{
		Since: r.Body.Since, Until: r.Body.Until, EventType: (*string)(r.Body.EventType),
	}, request(ctx, http.StatusAccepted, startedRecovery))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "recoveryId", made.ID)
	return startedRecovery(made), nil
}

func startedRecovery(r *db.Recovery) gen.RecoverWebhook202JSONResponse {
	return gen.RecoverWebhook202JSONResponse{Data: recovery(r)}
}

func (s *server) ListRecoveries(ctx context.Context, r gen.ListRecoveriesRequestObject) (gen.ListRecoveriesResponseObject, error) {
	of := publicid.Read[publicid.Webhook](r.WebhookID)
	p, err := s.Webhooks.Recoveries(ctx, of, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListRecoveries200JSONResponse{Data: each(p.Items, recovery), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) GetRecovery(ctx context.Context, r gen.GetRecoveryRequestObject) (gen.GetRecoveryResponseObject, error) {
	of := publicid.Read[publicid.Webhook](r.WebhookID)
	id := publicid.Read[publicid.Recovery](r.RecoveryID)
	found, err := s.Webhooks.Recovery(ctx, of, id)
	if err != nil {
		return nil, err
	}
	return gen.GetRecovery200JSONResponse{Data: recovery(found)}, nil
}

func recovery(r *db.Recovery) gen.Recovery {
	return gen.Recovery{
		ID: r.ID.String(), WebhookID: r.WebhookID.String(), Since: r.Since, Until: r.Until,
		EventType: orNull((*gen.DeliveryEventType)(r.EventType)), Status: gen.RecoveryStatus(r.Status),
		StoppedReason: orNull(r.StoppedReason), Total: orNull(r.Total), Replayed: r.Replayed,
		CreatedAt: r.CreatedAt, EndedAt: orNull(r.EndedAt),
	}
}
