// Package privacy handles data-subject requests: the export and the erasure of a contact's personal
// data. The row of a request is the receipt, and the outbox of the workflow that processes it page by
// page. The package also erases removed members. README.md states the rules.
package privacy

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
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// maxSameAddress is the maximum number of other contacts that a receipt names. An address with more
// contacts is no personal one.
const maxSameAddress = 100

// The stages of a request. The request's position is the progress within a stage.
const (
	stageContact  = "contact"
	stagePosts    = "posts"
	stageVotes    = "votes"
	stageComments = "comments"
	// stageSubmissions exports the submissions that wait for moderation.
	stageSubmissions = "submissions"
	stageEvents      = "events"
	// stageAnswers clears the answers of receivers. stageLastAnswers clears the answers of attempts that
	// were under way during the erasure of their payload.
	stageAnswers     = "answers"
	stageLastAnswers = "last_answers"
)

const contactDeleted = "contact_deleted"

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service from its collaborators. The box seals the records of exports.
func New(s *postgres.DB, changes *change.Runner, c *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: c, secrets: secrets}
}

// SubjectRequest is an export or an erasure. Of is its contact before it began, which only a
// precondition reads.
type SubjectRequest struct {
	*db.SubjectRequest
	Of *contacts.ContactDetail
}

// checkIfMatch checks a locked contact against the request's precondition.
func checkIfMatch(ctx context.Context, c *change.Change, q change.Request[SubjectRequest], of *db.Contact) error {
	return q.CheckIfMatchOf(c, func() (SubjectRequest, error) {
		whole, err := contacts.Detail(ctx, c.Client(), of)
		return SubjectRequest{Of: whole}, err
	})
}

// Export starts an export of all data about a contact. If an export of the contact is running, it
// returns that one.
func (s *Service) Export(ctx context.Context, id publicid.Contact, q change.Request[SubjectRequest]) (SubjectRequest, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (started SubjectRequest, err error) {
		if err := access.MustAdminister(ctx, c.APIKey); err != nil {
			return started, err
		}
		// The lock excludes concurrent exports and the deletion of the contact.
		of, err := contacts.OnlyContact(ctx, c.Contact.Query().Where(contact.ID(id)).ForUpdate(postgres.NoKeyUpdate))
		if err != nil {
			return started, err
		}
		if err := checkIfMatch(ctx, c, q, of); err != nil {
			return started, err
		}
		started.SubjectRequest, err = c.SubjectRequest.Query().Where(
			subjectrequest.ContactID(id), subjectrequest.KindEQ(subjectrequest.KindExport),
			subjectrequest.StatusEQ(subjectrequest.StatusRunning),
		).Only(ctx)
		if !db.IsNotFound(err) {
			return started, errorOrNil(err, "look for an export that runs")
		}
		started.SubjectRequest, err = s.insert(ctx, c, of, c.SubjectRequest.Create().SetKind(subjectrequest.KindExport).SetStage(stageContact))
		c.Audit("exportContact", id)
		return started, err
	})
}

// Erase deletes a contact with the hashes of its address, the name of its guest and the records of its
// exports. The workflow then erases the contact's data from events. If blank is set, it also blanks
// the texts that the contact wrote.
func (s *Service) Erase(ctx context.Context, id publicid.Contact, blank bool, q change.Request[SubjectRequest]) (SubjectRequest, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (started SubjectRequest, err error) {
		if err := access.MustAdminister(ctx, c.APIKey); err != nil {
			return started, err
		}
		of, err := lockWithLinks(ctx, c, id)
		if err != nil {
			return started, err
		}
		if err := checkIfMatch(ctx, c, q, of); err != nil {
			return started, err
		}
		if err := endSubmissions(ctx, c, of); err != nil {
			return started, err
		}
		if err := endExports(ctx, c, id); err != nil {
			return started, err
		}
		text := subjectrequest.TextKeep
		if blank {
			text = subjectrequest.TextBlank
		}
		started.SubjectRequest, err = s.insert(ctx, c, of,
			c.SubjectRequest.Create().SetKind(subjectrequest.KindErase).SetText(text).SetStage(stagePosts))
		if err != nil {
			return started, err
		}
		if blank {
			if err := noteTexts(ctx, c.Tx, started.ID, of); err != nil {
				return started, err
			}
		}
		if err := erasePerson(ctx, c.Tx, of); err != nil {
			return started, err
		}
		c.Audit("eraseContact", id)
		if err := contacts.Remove(ctx, c, of); err != nil {
			return started, err
		}
		// This step is last. Every change that could still answer with the contact has ended by now, or waits
		// for one of the locked rows.
		return started, change.RemoveAnswers(ctx, c.Tx, id.UUID())
	})
}

// lockWithLinks locks a contact and its posts for the erasure. First it removes the contact's pending
// links and its address in backfills. A visitor who uses a link also locks the link before the post
// and the contact. The same order prevents deadlocks, and the following statements see the rows that
// such a visitor has created.
func lockWithLinks(ctx context.Context, c *change.Change, id publicid.Contact) (*db.Contact, error) {
	before, err := contacts.OnlyContact(ctx, c.Contact.Query().Where(contact.ID(id)))
	if err != nil {
		return nil, err
	}
	if err := endLinks(ctx, c.Tx, before); err != nil {
		return nil, err
	}
	if err := endBackfill(ctx, c.Tx, before); err != nil {
		return nil, err
	}
	of, err := contacts.LockWithPosts(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(hashOf(before), hashOf(of)) {
		return nil, postgres.ErrAgain // the address has changed, and the new one has other links
	}
	return of, nil
}

func hashOf(of *db.Contact) []byte {
	if of.EmailHash == nil {
		return nil
	}
	return *of.EmailHash
}

// endSubmissions removes the person's submissions from the moderation queue. It waits for a concurrent
// approval of one, so the following statements see the published row. A later approval fails, because
// the submission is gone.
func endSubmissions(ctx context.Context, c *change.Change, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	if _, err := c.Submission.Delete().Where(submission.EmailHash(*of.EmailHash)).Exec(ctx); err != nil {
		return errors.Wrap(err, "remove what waits of the person")
	}
	return nil
}

// insert writes a receipt. Its workflow starts after the commit.
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
	c.After(Run(made.ID, made.OrganizationID))
	return made, nil
}

// Run starts the run of an export or an erasure. Temporal learns nothing but the two ids.
func Run(id publicid.SubjectRequest, of publicid.Organization) jobs.Request {
	return jobs.Request{Workflow: "subject_request", ID: id.String(), Argument: "request", Summary: "exports or erases a person", Organization: of}
}

// endExports stops the running exports of an erased contact, expires the completed ones, and removes
// their records.
func endExports(ctx context.Context, c *change.Change, id publicid.Contact) error {
	exports, err := c.SubjectRequest.Query().
		Where(subjectrequest.ContactID(id), subjectrequest.KindEQ(subjectrequest.KindExport)).
		Order(db.Asc(subjectrequest.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the exports of the contact")
	}
	for _, e := range exports {
		at := postgres.Now()
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
	return update.SetStatus(subjectrequest.StatusStopped).SetStoppedReason(contactDeleted).SetFinishedAt(postgres.Now())
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

// errorOrNil wraps an error and keeps nil as nil.
func errorOrNil(err error, doing string) error {
	if err == nil {
		return nil
	}
	return errors.Wrap(err, doing)
}
