package api

import (
	"context"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/internal/access"
)

func (s *server) GetOrganization(ctx context.Context, _ gen.GetOrganizationRequestObject) (gen.GetOrganizationResponseObject, error) {
	found, err := s.Access.Organization(ctx)
	if err != nil {
		return nil, err
	}
	return foundOrganization(found), nil
}

func foundOrganization(o *access.Organization) gen.GetOrganization200JSONResponse {
	return gen.GetOrganization200JSONResponse{Data: organization(o)}
}

func (s *server) UpdateOrganization(ctx context.Context, r gen.UpdateOrganizationRequestObject) (gen.UpdateOrganizationResponseObject, error) {
	changed, err := s.Access.UpdateOrganization(ctx, access.OrganizationPatch{
		Color: emptyForNull(r.Body.Color), PublicClosed: r.Body.PublicClosed, BlockedWords: r.Body.BlockedWords,
		SubscriberMails: r.Body.SubscriberMails,
	}, conditional(ctx, http.StatusOK, changedOrganization, foundOrganization))
	if err != nil {
		return nil, err
	}
	return changedOrganization(changed), nil
}

func changedOrganization(o *access.Organization) gen.UpdateOrganization200JSONResponse {
	return gen.UpdateOrganization200JSONResponse{Data: organization(o)}
}

// emptyForNull returns an empty text for null, so that the use case deletes the value. It returns
// nil for a missing member.
func emptyForNull(n nullable.Nullable[string]) *string {
	if n.IsNull() {
		return new("")
	}
	return valueOf(n)
}

func organization(o *access.Organization) gen.OrganizationSettings {
	return gen.OrganizationSettings{
		ID: o.ID.String(), Name: o.Name, Slug: orNull(o.Slug), Color: orNull(o.Color),
		Plan: gen.Plan(o.Plan), BillingState: gen.BillingState(o.BillingState),
		PublicClosed: o.PublicClosed, BlockedWords: o.BlockedWords, SubscriberMails: o.SubscriberMails,
		SubscriberMailsAllowed: o.SubscriberMailsAllowed,
		CreatedAt:              o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
}
