package contacts

import (
	"context"
	"encoding/json"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// CreateContact inserts a contact and records contact.created. It returns problem.Conflict if
// another contact has the external user id, and problem.PlanLimit if the plan's cap is reached.
func (s *Service) CreateContact(ctx context.Context, in ContactInput, q change.Request[*db.Contact]) (*db.Contact, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Contact, error) {
		if err := s.mustHaveRoom(ctx, c); problem.Is(err, problem.PlanLimit) {
			// Report the conflict before the cap: the client wants to update a contact, and that
			// needs no larger plan.
			return nil, takenOr(ctx, c, change.Value(in.ExternalUserID), err)
		} else if err != nil {
			return nil, err
		}
		made, err := s.insertContact(ctx, c, newCreated(change.Value(in.ExternalUserID), in.Traits))
		if made == nil && err == nil {
			return nil, externalIDTaken()
		}
		if err == nil {
			c.Audit("createContact", made.ID)
		}
		return made, err
	})
}

// takenOr returns the conflict if another contact has the id, else the given problem.
func takenOr(ctx context.Context, c *change.Change, id *string, otherwise error) error {
	if id == nil {
		return otherwise
	}
	taken, err := postgres.Exists(ctx, c.Contact.Query().Where(contact.ExternalUserID(*id)))
	if err != nil {
		return errors.Wrap(err, "look up the contact")
	}
	if taken {
		return externalIDTaken()
	}
	return otherwise
}

type newContact struct {
	externalUserID       *string
	traits               Traits
	source, consentBasis string
	// firstSeenAt and lastSeenAt default to the current time.
	firstSeenAt, lastSeenAt time.Time
}

// newCreated returns a contact that a program of the organization adds.
func newCreated(externalUserID *string, in Traits) newContact {
	return newContact{externalUserID: externalUserID, traits: in, source: "admin", consentBasis: "admin_created"}
}

// insertContact inserts a contact and records its event. It returns nil if the external user id is
// taken.
func (s *Service) insertContact(ctx context.Context, c *change.Change, in newContact) (*db.Contact, error) {
	made, err := s.insertRow(ctx, c, in)
	if made == nil || err != nil {
		return nil, err
	}
	return made, recordCreated(c, made)
}

func recordCreated(c *change.Change, made *db.Contact) error {
	return c.Record(event.ContactCreated, &event.ContactCreatedPayload{Contact: eventContact(made)})
}

// insertRow is insertContact without the event.
func (s *Service) insertRow(ctx context.Context, c *change.Change, in newContact) (*db.Contact, error) {
	id, row := publicid.NewContact(), c.Contact.Create()
	if err := s.fillRow(row, id, in); err != nil {
		return nil, err
	}
	fresh, err := postgres.Inserted(row.OnConflict(sql.DoNothing()).Exec(ctx))
	if err != nil || !fresh {
		return nil, err
	}
	made, err := c.Contact.Get(ctx, id)
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return made, nil
}

// fillRow sets all columns of a new contact.
func (s *Service) fillRow(row *db.ContactCreate, id publicid.Contact, in newContact) error {
	at := postgres.Now()
	row.SetMetadata(json.RawMessage("{}")) // the default, if the request has none
	for column, told := range in.traits.told() {
		if err := s.put(row.Mutation(), column, told); err != nil {
			return err
		}
	}
	row.SetID(id).SetNillableExternalUserID(in.externalUserID).
		SetSource(in.source).SetConsentBasis(in.consentBasis).
		SetFirstSeenAt(at).SetLastSeenAt(at).SetCreatedAt(at).SetUpdatedAt(at)
	if !in.firstSeenAt.IsZero() {
		row.SetFirstSeenAt(in.firstSeenAt).SetLastSeenAt(in.lastSeenAt)
	}
	return nil
}
