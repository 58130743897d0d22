// Package backfill creates contacts for people who voted, posted or commented before the opt-in box went
// live. The service stores only hashes of their addresses, so the operator supplies the addresses from
// another source. README.md states the rules.
package backfill

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contactbackfill"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

const (
	// MaxAddresses is the maximum number of addresses in a backfill. One transaction inserts them in
	// some seconds.
	MaxAddresses = 100_000
	// inserted is the number of rows that a statement inserts.
	inserted = 500
	// page is the number of addresses in a transaction, which blocks new contacts of the organization.
	page = 100
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service from its collaborators. The box seals the addresses until they are processed.
func New(s *postgres.DB, changes *change.Runner, c *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: c, secrets: secrets}
}

// Person is a person with a known address. The name is optional.
type Person struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

// Wanted is the input of a backfill.
type Wanted struct {
	// Before is the exclusive end of the activity that counts.
	Before time.Time
	// People have distinct addresses that contacts.CheckPerson has accepted.
	People []Person
	// Invalid is the number of invalid lines, for the receipt.
	Invalid int
}

func (w *Wanted) check() error {
	var bad problem.Fields
	bad.Moment("before", &w.Before)
	if w.Before.After(postgres.Now()) {
		bad.Add("before", "past", "must not be in the future: everybody was asked since")
	}
	if n := len(w.People); n == 0 || n > MaxAddresses {
		bad.Add("people", "size", "must be 1 to %d addresses, and are %d", MaxAddresses, n)
	}
	return bad.Err()
}

// Begin stores the sealed addresses and starts the workflow after the commit. One transaction stores all
// of them. It acts for the operator, in the organization of the context and in every billing state.
func (s *Service) Begin(ctx context.Context, w Wanted) (*db.ContactBackfill, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	of, err := s.store.Client().Organization.Query().Only(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization")
	}
	var made *db.ContactBackfill
	err = s.changes.RunForService(ctx, of.ID, func(ctx context.Context, c *change.Change) error {
		var err error
		made, err = c.ContactBackfill.Create().SetActiveBefore(w.Before.UTC().Truncate(time.Microsecond)).
			SetAddresses(len(w.People)).SetInvalidLines(w.Invalid).Save(ctx)
		if err != nil {
			return errors.Wrap(err, "insert the backfill")
		}
		if err := s.keep(ctx, c, made.ID, w.People); err != nil {
			return err
		}
		c.Audit("backfillContacts", made.ID)
		c.After(Run(made.ID, made.OrganizationID))
		return nil
	})
	return made, err
}

// Run starts the run of a backfill.
func Run(id publicid.ContactBackfill, of publicid.Organization) jobs.Request {
	return jobs.Request{
		Workflow: "backfill_contacts", ID: id.String(), Argument: "backfill", Summary: "makes contacts of people with old activity", Organization: of,
	}
}

// keep inserts the addresses.
func (s *Service) keep(ctx context.Context, c *change.Change, of publicid.ContactBackfill, people []Person) error {
	for len(people) > 0 {
		some := people[:min(inserted, len(people))]
		people = people[len(some):]
		rows := make([]*db.BackfillAddressCreate, len(some))
		for i, p := range some {
			text, err := json.Marshal(p)
			if err != nil {
				return errors.Wrap(err, "encode an address")
			}
			id := publicid.NewBackfillAddress()
			rows[i] = c.BackfillAddress.Create().SetID(id).SetBackfillID(of).SetEmailHash(s.contacts.EmailHash(p.Email)).
				SetSealed(s.secrets.SealApart(id.String(), string(text)))
		}
		if err := c.BackfillAddress.CreateBulk(rows...).Exec(ctx); err != nil {
			return errors.Wrap(err, "insert addresses")
		}
	}
	return nil
}

// Backfill loads a receipt of any organization, for the operator.
func (s *Service) Backfill(ctx context.Context, id publicid.ContactBackfill) (*db.ContactBackfill, error) {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil, problem.Missing("backfill")
	}
	if err != nil {
		return nil, err
	}
	found, err := s.store.Client().ContactBackfill.Query().Where(contactbackfill.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("backfill")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the backfill")
	}
	return found, nil
}

// Left returns the number of remaining addresses.
func (s *Service) Left(ctx context.Context, of *db.ContactBackfill) (int, error) {
	return leftOfBackfill(postgres.WithOrganization(ctx, of.OrganizationID), s.store, of.ID)
}
