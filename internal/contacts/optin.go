package contacts

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/problem"
)

// BasisOptIn is the consent basis of a person who ticked the opt-in on a public board.
const BasisOptIn = "public_interaction_opt_in"

// OptIn returns the oldest contact with an address. If there is none, it makes a contact with this
// source and records contact.created. It does not change the name or the basis of an existing
// contact. The contact is locked as by Keep. If the plan's cap is reached, OptIn returns nil, and
// the person's vote or post counts nevertheless.
func (s *Service) OptIn(ctx context.Context, c *change.Change, email, name, source string) (*db.Contact, error) {
	if found, err := byEmail(ctx, c, email); found != nil || err != nil {
		return found, err
	}
	// The lock serializes two links that are used concurrently, so that they make one contact.
	if err := c.LockOrganization(ctx); err != nil {
		return nil, err
	}
	if found, err := byEmail(ctx, c, email); found != nil || err != nil {
		return found, err
	}
	err := s.mustHaveRoom(ctx, c)
	if problem.Is(err, problem.PlanLimit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := Traits{Email: nullable.NewNullableWithValue(email), Name: nullable.NewNullableWithValue(name)}
	var bad problem.Fields
	if known.Check(&bad); bad.Err() != nil {
		return nil, bad.Err()
	}
	return s.insertContact(ctx, c, newContact{traits: known, source: source, consentBasis: BasisOptIn})
}

func byEmail(ctx context.Context, c *change.Change, email string) (*db.Contact, error) {
	found, err := c.Contact.Query().Where(contact.Email(normalEmail(email))).Order(db.Asc(contact.FieldID)).Limit(1).ForShare().All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the contact")
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}
