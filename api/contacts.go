package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

func (s *server) IdentifyContact(ctx context.Context, r gen.IdentifyContactRequestObject) (gen.IdentifyContactResponseObject, error) {
	c, created, err := s.Contacts.IdentifyContact(ctx, r.Body.ExternalUserID, traits(r.Body.ContactTraits))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "contactId", c.ID)
	answer := contact(c)
	if created {
		return gen.IdentifyContact201JSONResponse{Data: answer}, nil
	}
	return gen.IdentifyContact200JSONResponse{Data: answer}, nil
}

func (s *server) IdentifyContacts(ctx context.Context, r gen.IdentifyContactsRequestObject) (gen.IdentifyContactsResponseObject, error) {
	memory, _ := ctx.Value(answerMemoryKey).(*page.Reservation)
	done, err := s.Contacts.IdentifyContacts(ctx, contactItems(ctx, r.Body.Contacts), memory)
	if err != nil {
		return nil, err
	}
	touchContacts(ctx, done)
	return gen.IdentifyContacts200JSONResponse{Data: s.contactResults(ctx, done)}, nil
}

func (s *server) UpsertContacts(ctx context.Context, r gen.UpsertContactsRequestObject) (gen.UpsertContactsResponseObject, error) {
	memory, _ := ctx.Value(answerMemoryKey).(*page.Reservation)
	upserted := func(done []contacts.Identified) gen.UpsertContacts200JSONResponse {
		return gen.UpsertContacts200JSONResponse{Data: s.contactResults(ctx, done)}
	}
	done, err := s.Contacts.UpsertContacts(ctx, contactItems(ctx, r.Body.Contacts), memory, request(ctx, http.StatusOK, upserted))
	if err != nil {
		return nil, err
	}
	touchContacts(ctx, done)
	return upserted(done), nil
}

func contactItems(ctx context.Context, all []gen.IdentifyContactRequest) []contacts.Identification {
	refused, in := refusedItems(ctx), make([]contacts.Identification, len(all))
	for i, c := range all {
		in[i] = contacts.Identification{ExternalUserID: c.ExternalUserID, Traits: traits(c.ContactTraits), Refused: refused[i]}
	}
	return in
}

// contactResults converts the results of a batch.
func (s *server) contactResults(ctx context.Context, done []contacts.Identified) []gen.IdentifiedContact {
	results := make([]gen.IdentifiedContact, len(done))
	var told *problem.Error
	var last error
	for i, d := range done {
		if d.Err == nil {
			one := contact(d.Contact)
			results[i].Contact, results[i].Created = &one, &d.Created
			continue
		}
		if last == nil || !errors.Is(d.Err, last) { // an error of several items is logged once
			last, told = d.Err, s.problemOf(ctx.(*gin.Context), d.Err)
		}
		results[i].Error = &gen.ErrorBody{Code: gen.ErrorCode(told.Code), Message: told.Message, Details: told.Details}
	}
	return results
}

// touchContacts notes the contacts of a batch for the request's log line.
func touchContacts(ctx context.Context, done []contacts.Identified) {
	var ids []fmt.Stringer
	for _, d := range done {
		if d.Err == nil {
			ids = append(ids, d.Contact.ID)
		}
	}
	change.LogIDs(ctx, "contactIds", ids...)
}

func (s *server) GetContact(ctx context.Context, r gen.GetContactRequestObject) (gen.GetContactResponseObject, error) {
	id := publicid.Read[publicid.Contact](r.ContactID)
	c, err := s.Contacts.Contact(ctx, id)
	if err != nil {
		return nil, err
	}
	return foundContact(c), nil
}

func foundContact(c *contacts.ContactDetail) gen.GetContact200JSONResponse {
	return gen.GetContact200JSONResponse{Data: gen.ContactDetail{
		ContactFields: contactFields(c.Contact), OrganizationID: c.OrganizationID.String(),
		PostCount: c.PostCount, VoteCount: c.VoteCount, CommentCount: c.CommentCount,
	}}
}

func (s *server) CreateContact(ctx context.Context, r gen.CreateContactRequestObject) (gen.CreateContactResponseObject, error) {
	c, err := s.Contacts.CreateContact(ctx, contacts.ContactInput{
		Traits: traits(r.Body.ContactTraits), ExternalUserID: r.Body.ExternalUserID,
	}, request(ctx, http.StatusCreated, createdContact))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "contactId", c.ID)
	return createdContact(c), nil
}

func createdContact(c *db.Contact) gen.CreateContact201JSONResponse {
	return gen.CreateContact201JSONResponse{Data: contact(c)}
}

func (s *server) UpdateContact(ctx context.Context, r gen.UpdateContactRequestObject) (gen.UpdateContactResponseObject, error) {
	id := publicid.Read[publicid.Contact](r.ContactID)
	c, err := s.Contacts.UpdateContact(ctx, id, contacts.ContactInput{
		Traits: traits(r.Body.ContactTraits), ExternalUserID: r.Body.ExternalUserID,
	}, conditional(ctx, http.StatusOK, updatedContact, foundContact))
	if err != nil {
		return nil, err
	}
	return updatedContact(c), nil
}

func updatedContact(c *contacts.ContactDetail) gen.UpdateContact200JSONResponse {
	return gen.UpdateContact200JSONResponse{Data: contact(c.Contact)}
}

func (s *server) DeleteContact(ctx context.Context, r gen.DeleteContactRequestObject) (gen.DeleteContactResponseObject, error) {
	id := publicid.Read[publicid.Contact](r.ContactID)
	gone := func(*contacts.ContactDetail) gen.DeleteContact200JSONResponse {
		return gen.DeleteContact200JSONResponse{Data: deleted(id)}
	}
	if err := s.Contacts.DeleteContact(ctx, id, conditional(ctx, http.StatusOK, gone, foundContact)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func (s *server) ListContacts(ctx context.Context, r gen.ListContactsRequestObject) (gen.ListContactsResponseObject, error) {
	p, err := s.Contacts.Contacts(ctx, contacts.ContactQuery{
		Query: largePage(ctx, r.Params.Cursor, r.Params.Limit), Q: r.Params.Q, Plans: r.Params.Plan,
		ExternalUserID: r.Params.ExternalUserID, Email: r.Params.Email, Source: r.Params.Source,
		ConsentBasis: r.Params.ConsentBasis, Sort: (*string)(r.Params.Sort),
		Sync: page.Sync{UpdatedSince: r.Params.UpdatedSince, IncludeDeleted: r.Params.IncludeDeleted},
	})
	if err != nil {
		return nil, err
	}
	return gen.ListContacts200JSONResponse{
		Data: each(p.Items, contact), NextCursor: orNull(p.NextCursor), SyncCursor: p.SyncCursor, Deleted: deletions(p.Deleted),
	}, nil
}

func (s *server) ListContactPosts(ctx context.Context, r gen.ListContactPostsRequestObject) (gen.ListContactPostsResponseObject, error) {
	of := publicid.Read[publicid.Contact](r.ContactID)
	p, err := s.Feedback.ContactPosts(ctx, of, largePage(ctx, r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListContactPosts200JSONResponse{Data: each(p.Items, post), NextCursor: orNull(p.NextCursor)}, nil
}

func contact(c *db.Contact) gen.Contact {
	return gen.Contact{ContactFields: contactFields(c), OrganizationID: c.OrganizationID.String()}
}

func contactFields(c *db.Contact) gen.ContactFields {
	return gen.ContactFields{
		ID: c.ID.String(), ExternalUserID: orNull(c.ExternalUserID), Email: orNull(c.Email),
		Name: orNull(c.Name), Plan: orNull(c.Plan), MRRCents: orNull(c.MrrCents), Currency: orNull(c.Currency),
		Metadata: c.Metadata, Source: c.Source, ConsentBasis: c.ConsentBasis,
		FirstSeenAt: c.FirstSeenAt, LastSeenAt: c.LastSeenAt, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

func traits(t gen.ContactTraits) contacts.Traits {
	return contacts.Traits{
		Email: t.Email, Name: t.Name, Plan: t.Plan, MRRCents: t.MRRCents, Currency: t.Currency, Metadata: t.Metadata,
	}
}
