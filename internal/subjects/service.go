// Package subjects does what the law gives the person that a contact is: a copy of everything that
// is kept of them, and their erasure; and the erasure of a removed member. Both are data-subject requests, whose row is the receipt and
// the outbox of the workflow that goes on with it, a page at a time. README.md states the rules.
package subjects

import (
	"bytes"
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/subjectrequest"
	"earshot/ent/db/submission"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// maxSameAddress bounds what a receipt names; more contacts with one address are a list of nobody's.
const maxSameAddress = 100

// The stages of a request. What a stage leaves undone its position says.
const (
	stageContact  = "contact"
	stagePosts    = "posts"
	stageVotes    = "votes"
	stageComments = "comments"
	// stageSubmissions is for what waits to be looked at.
	stageSubmissions = "submissions"
	stageEvents      = "events"
	// stageAnswers clears what receivers answered, and stageLastAnswers what those answered who were
	// being sent a payload while it was erased.
	stageAnswers     = "answers"
	stageLastAnswers = "last_answers"
)

const contactDeleted = "contact_deleted"

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service from its collaborators. The box seals the records of exports.
func New(s *store.Store, changes *change.Runner, c *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: c, secrets: secrets}
}

// Export begins to collect all there is about the person that a contact is. While an export of the
// contact runs, that is the one.
func (s *Service) Export(ctx context.Context, id publicid.Contact) (*db.SubjectRequest, error) {
	var made *db.SubjectRequest
	err := s.changes.Run(ctx, func(c *change.Change) error {
		if err := access.MustAdminister(ctx, c.APIKey); err != nil {
			return err
		}
		// One at a time, and neither while it is deleted.
		of, err := contacts.OnlyContact(ctx, c.Contact.Query().Where(contact.ID(id)).ForUpdate(store.NoKeyUpdate))
		if err != nil {
			return err
		}
		made, err = c.SubjectRequest.Query().Where(
			subjectrequest.ContactID(id), subjectrequest.KindEQ(subjectrequest.KindExport),
			subjectrequest.StatusEQ(subjectrequest.StatusRunning),
		).Only(ctx)
		if !db.IsNotFound(err) {
			return errorOrNil(err, "look for an export that runs")
		}
		made, err = s.insert(ctx, c, of, c.SubjectRequest.Create().SetKind(subjectrequest.KindExport).SetStage(stageContact))
		c.Audit("exportContact", id)
		return err
	})
	return made, err
}

// Erase deletes a contact, as contacts does, with the hashes of its address, the name of its guest
// and the copies that exports have made. What its events say of it is erased afterwards, and so is,
// where blank is set, the text that it wrote.
func (s *Service) Erase(ctx context.Context, id publicid.Contact, blank bool) (*db.SubjectRequest, error) {
	var made *db.SubjectRequest
	err := s.changes.Run(ctx, func(c *change.Change) error {
		if err := access.MustAdminister(ctx, c.APIKey); err != nil {
			return err
		}
		of, err := lockWithLinks(ctx, c, id)
		if err != nil {
			return err
		}
		if err := endSubmissions(ctx, c, of); err != nil {
			return err
		}
		if err := endExports(ctx, c, id); err != nil {
			return err
		}
		text := subjectrequest.TextKeep
		if blank {
			text = subjectrequest.TextBlank
		}
		made, err = s.insert(ctx, c, of,
			c.SubjectRequest.Create().SetKind(subjectrequest.KindErase).SetText(text).SetStage(stagePosts))
		if err != nil {
			return err
		}
		if blank {
			if err := store.NoteTexts(ctx, c.Tx, made.ID, of); err != nil {
				return err
			}
		}
		if err := store.ErasePerson(ctx, c.Tx, of); err != nil {
			return err
		}
		c.Audit("eraseContact", id)
		if err := contacts.Remove(ctx, c, of); err != nil {
			return err
		}
		// Last: every change that could still answer with the contact has ended, or waits for one of the
		// rows that are locked now.
		return store.RemoveAnswers(ctx, c.Tx, of.OrganizationID, id.UUID())
	})
	return made, err
}

// lockWithLinks locks a contact that is erased, and its posts, once nothing waits any more for a link
// that was mailed to it, and no backfill looks for its address. The links are first, as for who uses one, who locks the link before the post
// and the contact; what that made is there then, for the statements that follow to come to.
func lockWithLinks(ctx context.Context, c *change.Change, id publicid.Contact) (*db.Contact, error) {
	before, err := contacts.OnlyContact(ctx, c.Contact.Query().Where(contact.ID(id)))
	if err != nil {
		return nil, err
	}
	if err := store.EndLinks(ctx, c.Tx, before); err != nil {
		return nil, err
	}
	if err := store.EndBackfill(ctx, c.Tx, before); err != nil {
		return nil, err
	}
	of, err := contacts.LockWithPosts(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(hashOf(before), hashOf(of)) {
		return nil, store.ErrAgain // its address is another one meanwhile, which has other links
	}
	return of, nil
}

func hashOf(of *db.Contact) []byte {
	if of.EmailHash == nil {
		return nil
	}
	return *of.EmailHash
}

// endSubmissions removes what the person has written that waits to be looked at. One that is being
// approved is waited for, and so is there for the statements that follow to come to; or else its
// approval finds it gone.
func endSubmissions(ctx context.Context, c *change.Change, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	if _, err := c.Submission.Delete().Where(submission.EmailHash(*of.EmailHash)).Exec(ctx); err != nil {
		return errors.Wrap(err, "remove what waits of the person")
	}
	return nil
}

// insert writes a receipt, whose workflow starts after the commit.
func (s *Service) insert(ctx context.Context, c *change.Change, of *db.Contact, row *db.SubjectRequestCreate) (*db.SubjectRequest, error) {
	if of.Email != nil {
		same, err := c.Contact.Query().Where(contact.Email(*of.Email), contact.IDNEQ(of.ID)).
			Order(db.Asc(contact.FieldID)).Limit(maxSameAddress).Select(contact.FieldID).All(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "look for other contacts with the address")
		}
		ids := make([]publicid.Contact, len(same))
		for i, o := range same {
			ids[i] = o.ID
		}
		row.SetSameAddress(ids)
	}
	made, err := row.SetContactID(of.ID).Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "insert the data-subject request")
	}
	c.StartSubjectRequest(change.RunningSubjectRequest{Request: made.ID, Organization: made.OrganizationID})
	return made, nil
}

// endExports stops the exports of a contact that is erased, and removes what there is of them.
func endExports(ctx context.Context, c *change.Change, id publicid.Contact) error {
	exports, err := c.SubjectRequest.Query().
		Where(subjectrequest.ContactID(id), subjectrequest.KindEQ(subjectrequest.KindExport)).
		Order(db.Asc(subjectrequest.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the exports of the contact")
	}
	for _, e := range exports {
		at := store.Now()
		switch {
		case e.Status == subjectrequest.StatusRunning:
			if err := stop(c.SubjectRequest.UpdateOne(e)).Exec(ctx); err != nil {
				return errors.Wrap(err, "stop an export of the contact")
			}
		case e.ExpiresAt != nil && e.ExpiresAt.After(at):
			if err := c.SubjectRequest.UpdateOne(e).SetExpiresAt(at).Exec(ctx); err != nil {
				return errors.Wrap(err, "end an export of the contact")
			}
		}
		if err := removeRecords(ctx, c, e.ID); err != nil {
			return err
		}
	}
	return nil
}

func stop(update *db.SubjectRequestUpdateOne) *db.SubjectRequestUpdateOne {
	return update.SetStatus(subjectrequest.StatusStopped).SetStoppedReason(contactDeleted).SetFinishedAt(store.Now())
}

func removeRecords(ctx context.Context, c *change.Change, of publicid.SubjectRequest) error {
	if _, err := c.SubjectRecord.Delete().Where(subjectrecord.RequestID(of)).Exec(ctx); err != nil {
		return errors.Wrap(err, "remove the records of a data-subject request")
	}
	return nil
}

// Request loads a receipt.
func (s *Service) Request(ctx context.Context, id publicid.SubjectRequest) (*db.SubjectRequest, error) {
	found, err := s.store.Client().SubjectRequest.Query().Where(subjectrequest.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("data-subject request")
	}
	return found, errorOrNil(err, "load the data-subject request")
}

// errorOrNil wraps an error where there is one.
func errorOrNil(err error, doing string) error {
	if err == nil {
		return nil
	}
	return errors.Wrap(err, doing)
}
