package contacts

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// ContactInput has the values of a new contact, or the changes to an existing one.
type ContactInput struct {
	Traits
	ExternalUserID nullable.Nullable[string]
}

func (in *ContactInput) check() error {
	var bad problem.Fields
	change.Given(in.ExternalUserID, func(v string) { bad.Text("externalUserId", v, 1, maxExternalUserID) })
	in.Check(&bad)
	return bad.Err()
}

func externalIDTaken() error {
	return problem.New(problem.Conflict, "external_user_id is already taken").With("field", "externalUserId")
}

// UpdateContact overwrites the specified traits and records contact.updated if one changes
// (specification, Identify rule 3). A request that sends back the values that it read changes
// nothing. The result has no counts.
func (s *Service) UpdateContact(
	ctx context.Context, id publicid.Contact, in ContactInput, q change.Request[*ContactDetail],
) (*ContactDetail, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*ContactDetail, error) {
		old, err := lockContact(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatchOf(c, func() (*ContactDetail, error) { return Detail(ctx, c.Client(), old) }); err != nil {
			return nil, err
		}
		changed, err := s.updateLocked(ctx, c, "updateContact", old, in)
		return &ContactDetail{Contact: changed}, err
	})
}

// updateLocked is UpdateContact for a locked contact. The audit trail names the operation.
func (s *Service) updateLocked(ctx context.Context, c *change.Change, operation string, old *db.Contact, in ContactInput) (*db.Contact, error) {
	update := c.Contact.UpdateOne(old)
	changes, err := s.overwrite(update, old, in)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return old, nil
	}
	c.Audit(operation, old.ID)
	changed, err := update.SetUpdatedAt(later(postgres.Now(), old.UpdatedAt)).Save(ctx)
	if postgres.IsExternalIDTaken(err) {
		return nil, externalIDTaken()
	}
	if err != nil {
		return nil, errors.Wrap(err, "update the contact")
	}
	return changed, c.Record(event.ContactUpdated, &event.ContactUpdatedPayload{
		Contact: eventContact(changed), Changes: changes,
	})
}

// overwrite sets the traits that differ and returns the changes. The changes also have the external
// user id.
func (s *Service) overwrite(update *db.ContactUpdateOne, old *db.Contact, in ContactInput) (map[string]event.Change, error) {
	changes, err := mergeTraits(old, func(t trait) (any, bool, error) {
		told, specified := t.told(&in.Traits)
		return told, specified, nil
	})
	if err == nil {
		err = s.putTraits(update.Mutation(), changes)
	}
	if next := change.Value(in.ExternalUserID); in.ExternalUserID.IsSpecified() && !change.Same(next, old.ExternalUserID) && err == nil {
		change.OrEmpty(next, update.SetExternalUserID, update.ClearExternalUserID)
		changes["externalUserId"] = event.Change{From: old.ExternalUserID, To: next}
	}
	return changes, err
}

// DeleteContact removes a contact and records contact.deleted. Its posts stay, without the contact.
func (s *Service) DeleteContact(ctx context.Context, id publicid.Contact, q change.Request[*ContactDetail]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*ContactDetail, error) {
		old, err := LockWithPosts(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatchOf(c, func() (*ContactDetail, error) { return Detail(ctx, c.Client(), old) }); err != nil {
			return nil, err
		}
		c.Audit("deleteContact", id)
		return &ContactDetail{Contact: old}, Remove(ctx, c, old)
	})
	return err
}

// LockWithPosts loads and locks a contact that will be removed, and its posts.
func LockWithPosts(ctx context.Context, c *change.Change, id publicid.Contact) (*db.Contact, error) {
	// Lock the posts first, because an update of a post locks the post before the contact. Then
	// lock the posts that were attached meanwhile.
	if err := lockPostsOf(ctx, c, id); err != nil {
		return nil, err
	}
	found, err := lockContact(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return found, lockPostsOf(ctx, c, id)
}

// Remove deletes a contact that LockWithPosts has locked, and records contact.deleted.
func Remove(ctx context.Context, c *change.Change, old *db.Contact) error {
	if err := c.Post.Update().Where(post.ContactID(old.ID)).ClearContactID().SetUpdatedAt(postgres.Now()).Exec(ctx); err != nil {
		return errors.Wrap(err, "take the contact off its posts")
	}
	if err := c.Contact.DeleteOne(old).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the contact")
	}
	return c.Record(event.ContactDeleted, &event.ContactDeletedPayload{
		Contact: event.DeletedContact{ID: old.ID, ExternalUserID: old.ExternalUserID},
	})
}

// lockPostsOf locks a contact's posts, including deleted ones, in the order of their ids.
func lockPostsOf(ctx context.Context, c *change.Change, id publicid.Contact) error {
	_, err := c.Post.Query().Where(post.ContactID(id)).Order(db.Asc(post.FieldID)).ForUpdate().Select(post.FieldID).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the contact's posts")
	}
	return nil
}

func lockContact(ctx context.Context, c *change.Change, id publicid.Contact) (*db.Contact, error) {
	return OnlyContact(ctx, c.Contact.Query().Where(contact.ID(id)).ForUpdate())
}

// OnlyContact loads the query's contact, or returns problem.NotFound.
func OnlyContact(ctx context.Context, query *db.ContactQuery) (*db.Contact, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("contact")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return found, nil
}
