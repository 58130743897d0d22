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

// Person names the contact who votes or comments, by one of its ids.
type Person struct {
	ID, ExternalUserID *string
	// Create has the contact of the external id identified, and so made where it isn't there.
	Create bool
}

// Named reports whether a contact is named at all.
func (p Person) Named() bool { return p.ID != nil || p.ExternalUserID != nil }

// Check adds what is wrong with the name.
func (p Person) Check(bad *problem.Fields) {
	if p.ID != nil && p.ExternalUserID != nil {
		bad.Add("externalUserId", "either", "can't be given together with contactId")
	}
	if p.ExternalUserID != nil {
		bad.Text("externalUserId", *p.ExternalUserID, 1, maxExternalUserID)
	}
}

// Keep finds the contact, or makes it where that is asked for, and locks it: until the transaction
// ends nobody changes it, and so its address, by which the person is known. Where it isn't there,
// Keep returns problem.NotFound.
func (s *Service) Keep(ctx context.Context, c *change.Change, p Person) (*db.Contact, error) {
	if p.Create && p.ExternalUserID != nil {
		found, _, err := s.identify(ctx, c, *p.ExternalUserID, Traits{})
		return found, err
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
