package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) IdentifyContact(ctx context.Context, r gen.IdentifyContactRequestObject) (gen.IdentifyContactResponseObject, error) {
	c, created, err := s.feedback.IdentifyContact(ctx, r.Body.ExternalUserID, traits(r.Body.ContactTraits))
	if err != nil {
		return nil, err
	}
	feedback.Touch(ctx, "contactId", c.ID)
	answer := gen.Contact{ContactFields: contactFields(c), OrganizationID: c.OrganizationID.String()}
	if created {
		return gen.IdentifyContact201JSONResponse{Data: answer}, nil
	}
	return gen.IdentifyContact200JSONResponse{Data: answer}, nil
}

func (s *server) GetContact(ctx context.Context, r gen.GetContactRequestObject) (gen.GetContactResponseObject, error) {
	id, err := feedback.PathID[publicid.Contact]("contactId", r.ContactID)
	if err != nil {
		return nil, err
	}
	c, err := s.feedback.Contact(ctx, id)
	if err != nil {
		return nil, err
	}
	return gen.GetContact200JSONResponse{Data: gen.ContactDetail{
		ContactFields: contactFields(c.Contact), OrganizationID: c.OrganizationID.String(),
		PostCount: c.PostCount, VoteCount: c.VoteCount, CommentCount: c.CommentCount,
	}}, nil
}

func contactFields(c *db.Contact) gen.ContactFields {
	return gen.ContactFields{
		ID: c.ID.String(), ExternalUserID: orNull(c.ExternalUserID), Email: orNull(c.Email),
		Name: orNull(c.Name), Plan: orNull(c.Plan), MRRCents: orNull(c.MrrCents), Currency: orNull(c.Currency),
		Metadata: c.Metadata, Source: c.Source, ConsentBasis: c.ConsentBasis,
		FirstSeenAt: c.FirstSeenAt, LastSeenAt: c.LastSeenAt, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

func traits(t gen.ContactTraits) feedback.Traits {
	return feedback.Traits{
		Email: t.Email, Name: t.Name, Plan: t.Plan, MRRCents: t.MRRCents, Currency: t.Currency, Metadata: t.Metadata,
	}
}
