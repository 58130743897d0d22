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

// BasisOptIn is the basis of who ticked the opt-in on a public board.
const BasisOptIn = "public_interaction_opt_in"

// OptIn finds the contact with an address, the oldest one, or makes one that came in by the
// source, and records contact.created; name and basis of one that is there stay as they are. The
// contact is locked as by Keep. Where the plan has no room for a new one OptIn returns nil: what
// the person did counts all the same.
func (s *Service) OptIn(ctx context.Context, c *change.Change, email, name, source string) (*db.Contact, error) {
	if found, err := byEmail(ctx, c, email); found != nil || err != nil {
		return found, err
	}
	// One at a time, so that two links that are used at once make one contact.
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
