// Package backfill makes contacts of people whose votes, posts and comments are from before anybody was
// asked for an opt-in, and whose addresses the operator knows from elsewhere: the service keeps hashes
// alone. README.md states the rules.
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
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

const (
	// MaxAddresses are inserted in one transaction, in some seconds.
	MaxAddresses = 100_000
	// inserted is how many rows a statement inserts.
	inserted = 500
	// page is how many addresses a transaction looks for, while contacts of the organization wait.
	page = 100
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service from its collaborators. The box seals addresses for as long as they are looked
// for.
func New(s *store.Store, changes *change.Runner, c *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: c, secrets: secrets}
}

// Person is somebody whose address is known. An empty name is none.
type Person struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

// Wanted is what is looked for.
type Wanted struct {
	// Before is the moment from which on activity doesn't count.
	Before time.Time
	// People have different addresses, which contacts.CheckPerson has passed.
	People []Person
	// Invalid are how many lines were none, for the receipt.
	Invalid int
}

func (w *Wanted) check() error {
	var bad problem.Fields
	bad.Moment("before", &w.Before)
	if w.Before.After(store.Now()) {
		bad.Add("before", "past", "must not be in the future: everybody was asked since")
	}
	if n := len(w.People); n == 0 || n > MaxAddresses {
		bad.Add("people", "size", "must be 1 to %d addresses, and are %d", MaxAddresses, n)
	}
	return bad.Err()
}

// Begin keeps the addresses, sealed, for the operator in the organization of the context, whatever its
// billing state, and has the workflow start after the commit: all of it, or nothing.
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
		c.StartBackfill(change.RunningBackfill{Backfill: made.ID, Organization: made.OrganizationID})
		return nil
	})
	return made, err
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

// Backfill loads a receipt, of any organization: an operator asks for it.
func (s *Service) Backfill(ctx context.Context, id publicid.ContactBackfill) (*db.ContactBackfill, error) {
	all := store.System(ctx, "an operator asks for a backfill by its id")
	found, err := s.store.Client().ContactBackfill.Query().Where(contactbackfill.ID(id)).Only(all)
	if db.IsNotFound(err) {
		return nil, problem.Missing("backfill")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the backfill")
	}
	return found, nil
}

// Left is how many addresses are still to be looked for.
func (s *Service) Left(ctx context.Context, id publicid.ContactBackfill) (int, error) {
	return s.store.LeftOfBackfill(ctx, id)
}
