package contacts

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/internal/change"
	"earshot/internal/problem"
)

// BasisLegacy is the basis of who was found in activity from before there was an opt-in.
const BasisLegacy = "legacy_inferred"

// Inferred is a person whose activity is from before there was an opt-in.
type Inferred struct {
	// Name may be empty: then it isn't known.
	Email, Name string
	// Source is how the oldest of it came in.
	Source                  string
	FirstSeenAt, LastSeenAt time.Time
}

// CheckPerson returns an address and a name as a contact has them, or everything that is wrong with
// them. An empty name is none.
func CheckPerson(email, name string) (normalEmailOf, normalName string, err error) {
	known := traitsOf(email, name)
	var bad problem.Fields
	known.Check(&bad)
	return normalEmail(email), strings.TrimSpace(name), bad.Err()
}

// traitsOf are an address and a name, which may be empty.
func traitsOf(email, name string) Traits {
	known := Traits{Email: nullable.NewNullableWithValue(email)}
	if strings.TrimSpace(name) != "" {
		known.Name = nullable.NewNullableWithValue(name)
	}
	return known
}

// EmailHash is what the activity of a person is found by.
func (s *Service) EmailHash(email string) []byte { return s.emailHash(email) }

// Infer makes a contact of a person whom no contact has the address of, and records contact.created. No
// room under the plan's cap is problem.PlanLimit, with which the transaction may go on.
func (s *Service) Infer(ctx context.Context, c *change.Change, in Inferred) error {
	if err := s.mustHaveRoom(ctx, c); err != nil {
		return err
	}
	known := traitsOf(in.Email, in.Name)
	var bad problem.Fields
	if known.Check(&bad); bad.Err() != nil {
		return bad.Err()
	}
	made, err := s.insertContact(ctx, c, newContact{
		traits: known, source: in.Source, consentBasis: BasisLegacy, firstSeenAt: in.FirstSeenAt, lastSeenAt: in.LastSeenAt,
	})
	if made == nil && err == nil {
		return errors.New("a contact without an external id was taken for one that is there")
	}
	return err
}
