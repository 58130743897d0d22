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

// BasisLegacy is the consent basis of a person found in activity that is older than the opt-in.
const BasisLegacy = "legacy_inferred"

// Inferred is a person found in activity that is older than the opt-in.
type Inferred struct {
	// Name is empty if it is unknown.
	Email, Name string
	// Source is the source of the oldest activity.
	Source                  string
	FirstSeenAt, LastSeenAt time.Time
}

// CheckPerson returns an address and a name in the form that contacts store, or all validation
// errors. The name may be empty.
func CheckPerson(email, name string) (normalEmailOf, normalName string, err error) {
	known := traitsOf(email, name)
	var bad problem.Fields
	known.Check(&bad)
	return normalEmail(email), strings.TrimSpace(name), bad.Err()
}

// traitsOf returns the traits for an address and a name, which may be empty.
func traitsOf(email, name string) Traits {
	known := Traits{Email: nullable.NewNullableWithValue(email)}
	if strings.TrimSpace(name) != "" {
		known.Name = nullable.NewNullableWithValue(name)
	}
	return known
}

// EmailHash is the hash by which a person's activity is found.
func (s *Service) EmailHash(email string) []byte { return s.emailHash(email) }

// Infer makes a contact for a person whose address no contact has, and records contact.created. It
// returns problem.PlanLimit if the plan's cap is reached. The transaction can go on after this
// error.
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
