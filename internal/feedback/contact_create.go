package feedback

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// CreateContact inserts a contact and records contact.created. An external user
// id that another contact has is problem.Conflict, no room under the plan's cap
// problem.PlanLimit.
func (s *Service) CreateContact(ctx context.Context, in ContactInput) (*db.Contact, error) {
	meta, err := in.check()
	if err != nil {
		return nil, err
	}
	var made *db.Contact
	err = s.change(ctx, func(c *change) error {
		if err := s.mustHaveRoom(ctx, c); problem.Is(err, problem.PlanLimit) {
			// The conflict before the cap: who meets it wants to update, not to pay.
			return c.takenOr(ctx, value(in.ExternalUserID), err)
		} else if err != nil {
			return err
		}
		made, err = s.insertContact(ctx, c, newContact{
			externalUserID: value(in.ExternalUserID), traits: in.Traits, meta: meta,
			source: "admin", consentBasis: "admin_created",
		})
		if made == nil && err == nil {
			return externalIDTaken()
		}
		return err
	})
	return made, err
}

// takenOr is the conflict where another contact has the id, else the problem given.
func (c *change) takenOr(ctx context.Context, id *string, otherwise error) error {
	if id == nil {
		return otherwise
	}
	taken, err := exists(ctx, c.Contact.Query().Where(contact.ExternalUserID(*id)))
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
	meta                 metadata
	source, consentBasis string
}

// insertContact writes a contact and its event. It returns nil when the external
// user id is taken.
func (s *Service) insertContact(ctx context.Context, c *change, in newContact) (*db.Contact, error) {
	id, at := publicid.NewContact(), now()
	mail := value(in.traits.Email)
	row := c.Contact.Create()
	if mail != nil {
		row.SetEmailHash(s.emailHash(*mail))
	}
	fresh, err := inserted(row.
		SetID(id).SetNillableExternalUserID(in.externalUserID).
		SetNillableEmail(mail).
		SetNillableName(value(in.traits.Name)).SetNillablePlan(value(in.traits.Plan)).
		SetNillableMrrCents(value(in.traits.MRRCents)).SetNillableCurrency(value(in.traits.Currency)).
		SetMetadata(in.meta.text()).
		SetSource(in.source).SetConsentBasis(in.consentBasis).
		SetFirstSeenAt(at).SetLastSeenAt(at).SetCreatedAt(at).SetUpdatedAt(at).
		OnConflict(sql.DoNothing()).Exec(ctx))
	if err != nil || !fresh {
		return nil, err
	}
	made, err := c.Contact.Get(ctx, id)
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return made, c.record(ctx, event.ContactCreated, &event.ContactCreatedPayload{Contact: eventContact(made)})
}
