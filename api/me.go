package api

import (
	"context"

	"earshot/api/gen"
	"earshot/internal/change"
)

func (s *server) GetMe(ctx context.Context, _ gen.GetMeRequestObject) (gen.GetMeResponseObject, error) {
	c := change.CallerOf(ctx)
	return gen.GetMe200JSONResponse{Data: gen.Me{
		APIKey: apiKey(c.Key),
		Organization: gen.Organization{
			ID: c.Organization.ID.String(), Name: c.Organization.Name, Slug: orNull(c.Organization.Slug),
			Plan: gen.Plan(c.Organization.Plan), BillingState: gen.BillingState(c.Organization.BillingState),
		},
		User: gen.User{ID: c.User.ID.String(), Email: c.User.Email, Name: c.User.Name, Role: gen.MemberRole(*c.User.Role)},
	}}, nil
}
