package contacts

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Person identifies the contact of a post, a vote or a comment by one of its ids.
type Person struct {
	ID, ExternalUserID *string
	// Create makes the contact with the external id if it does not exist.
	Create bool
}

// Named reports whether the request names a contact.
func (p Person) Named() bool { return p.ID != nil || p.ExternalUserID != nil }

// Either adds the failure of a request that names a contact by both ids.
func Either(bad *problem.Fields) {
	bad.Add("externalUserId", "either", "can't be given together with contactId")
}

// Check adds the validation errors of the ids.
func (p Person) Check(bad *problem.Fields) {
	if p.ID != nil && p.ExternalUserID != nil {
		Either(bad)
	}
	if p.ExternalUserID != nil {
		bad.Text("externalUserId", *p.ExternalUserID, 1, maxExternalUserID)
	}
}

// Keep loads the contact, or makes it if Create is set, and locks it. Until the transaction ends,
// the contact and its address cannot change. If the contact does not exist, Keep returns
// problem.NotFound.
func (s *Service) Keep(ctx context.Context, c *change.Change, p Person) (*db.Contact, error) {
	if p.Create && p.ExternalUserID != nil {
		return s.identifyOne(ctx, c, *p.ExternalUserID)
	}
	var named predicate.Contact
	field := "contactId"
	if p.ID != nil {
		named = contact.ID(publicid.Read[publicid.Contact](*p.ID))
	} else {
		named, field = contact.ExternalUserID(*p.ExternalUserID), "externalUserId"
	}
	found, err := c.Contact.Query().Where(named).ForShare().Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.MissingIn(field, "contact")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return found, nil
}
