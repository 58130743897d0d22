package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/feedback"
)

func (s *server) GetMe(ctx context.Context, _ gen.GetMeRequestObject) (gen.GetMeResponseObject, error) {
	c := feedback.CallerOf(ctx)
	return gen.GetMe200JSONResponse{Data: gen.Me{
		APIKey: apiKey(c.Key),
		Organization: gen.Organization{
			ID: c.Organization.ID.String(), Name: c.Organization.Name,
			Plan: gen.Plan(c.Organization.Plan), BillingState: gen.BillingState(c.Organization.BillingState),
		},
		User: gen.User{ID: c.User.ID.String(), Email: c.User.Email, Name: c.User.Name},
	}}, nil
}

func apiKey(k *db.APIKey) gen.APIKey {
	return gen.APIKey{
		ID: k.ID.String(), Name: k.Name, Prefix: k.Prefix, Scope: gen.APIKeyScope(k.Scope),
		CreatedAt: k.CreatedAt, ExpiresAt: orNull(k.ExpiresAt), LastUsedAt: orNull(k.LastUsedAt),
	}
}
