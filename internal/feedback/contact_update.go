package feedback

import (
	"context"

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
		if mail := value(in.Email); mail == nil {
			update.ClearEmailHash()
		} else {
			update.SetEmailHash(s.emailHash(*mail))
		}
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
