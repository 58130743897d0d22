package feedback

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// ContactInput is what a contact is made of, or what is changed of it.
type ContactInput struct {
	Traits
	ExternalUserID nullable.Nullable[string]
}

func (in *ContactInput) check() (metadata, error) {
	var bad problem.Fields
	given(in.ExternalUserID, func(v string) { text(&bad, "externalUserId", v, 1, maxExternalUserID) })
	meta := in.Traits.check(&bad)
	return meta, bad.Err()
}

func externalIDTaken() error {
	return problem.New(problem.Conflict, "external_user_id is already taken").With("field", "externalUserId")
}

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
		row.SetEmailHash(*s.emailHash(mail))
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

// UpdateContact overwrites the traits that are specified, and records
// contact.updated where one changes (specification, Identify rule 3). Sending
// back what was read changes nothing.
func (s *Service) UpdateContact(ctx context.Context, id publicid.Contact, in ContactInput) (*db.Contact, error) {
	meta, err := in.check()
	if err != nil {
		return nil, err
	}
	var changed *db.Contact
	err = s.change(ctx, func(c *change) error {
		old, err := c.lockContact(ctx, id)
		if err != nil {
			return err
		}
		update := c.Contact.UpdateOne(old)
		changes := s.overwrite(update, old, in, meta)
		if changed = old; len(changes) == 0 {
			return nil
		}
		changed, err = update.SetUpdatedAt(later(now(), old.UpdatedAt)).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return externalIDTaken()
		}
		if err != nil {
			return errors.Wrap(err, "update the contact")
		}
		return c.record(ctx, event.ContactUpdated, &event.ContactUpdatedPayload{
			Contact: eventContact(changed), Changes: changes,
		})
	})
	return changed, err
}

// overwrite puts the traits that differ into the update, and returns them.
func (s *Service) overwrite(update *db.ContactUpdateOne, old *db.Contact, in ContactInput, meta metadata) map[string]event.Change {
	changes := map[string]event.Change{}
	setTrait(changes, "externalUserId", old.ExternalUserID, in.ExternalUserID, update.SetExternalUserID, update.ClearExternalUserID)
	if setTrait(changes, "email", old.Email, in.Email, update.SetEmail, update.ClearEmail) {
		orEmpty(s.emailHash(value(in.Email)), update.SetEmailHash, update.ClearEmailHash)
	}
	setTrait(changes, "name", old.Name, in.Name, update.SetName, update.ClearName)
	setTrait(changes, "plan", old.Plan, in.Plan, update.SetPlan, update.ClearPlan)
	setTrait(changes, "mrrCents", old.MrrCents, in.MRRCents, update.SetMrrCents, update.ClearMrrCents)
	setTrait(changes, "currency", old.Currency, in.Currency, update.SetCurrency, update.ClearCurrency)
	if meta != nil && !sameJSON(meta.text(), old.Metadata) {
		update.SetMetadata(meta.text())
		changes["metadata"] = event.Change{From: old.Metadata, To: meta.text()}
	}
	return changes
}

// setTrait overwrites one trait where it was specified and is another, and notes
// the change.
func setTrait[T comparable](changes map[string]event.Change, name string, old *T, in nullable.Nullable[T],
	set func(T) *db.ContactUpdateOne, empty func() *db.ContactUpdateOne,
) bool {
	next := value(in)
	if !in.IsSpecified() || same(next, old) {
		return false
	}
	orEmpty(next, set, empty)
	changes[name] = event.Change{From: old, To: next}
	return true
}

// DeleteContact removes a contact and records contact.deleted. Its posts stay,
// without it.
func (s *Service) DeleteContact(ctx context.Context, id publicid.Contact) error {
	return s.change(ctx, func(c *change) error {
		// Its posts first: who changes a post locks that before the contact. Then
		// those that were attached meanwhile.
		if err := c.lockPostsOf(ctx, id); err != nil {
			return err
		}
		old, err := c.lockContact(ctx, id)
		if err != nil {
			return err
		}
		if err := c.lockPostsOf(ctx, id); err != nil {
			return err
		}
		if err := c.Post.Update().Where(post.ContactID(id)).ClearContactID().SetUpdatedAt(now()).Exec(ctx); err != nil {
			return errors.Wrap(err, "take the contact off its posts")
		}
		if err := c.Contact.DeleteOne(old).Exec(ctx); err != nil {
			return errors.Wrap(err, "delete the contact")
		}
		return c.record(ctx, event.ContactDeleted, &event.ContactDeletedPayload{
			Contact: event.DeletedContact{ID: id, ExternalUserID: old.ExternalUserID},
		})
	})
}

// lockPostsOf locks a contact's posts, deleted ones too, in the order of their ids.
func (c *change) lockPostsOf(ctx context.Context, id publicid.Contact) error {
	_, err := c.Post.Query().Where(post.ContactID(id)).Order(db.Asc(post.FieldID)).ForUpdate().Select(post.FieldID).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the contact's posts")
	}
	return nil
}

func (c *change) lockContact(ctx context.Context, id publicid.Contact) (*db.Contact, error) {
	return onlyContact(ctx, c.Contact.Query().Where(contact.ID(id)).ForUpdate())
}

func onlyContact(ctx context.Context, query *db.ContactQuery) (*db.Contact, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("contact")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return found, nil
}
