package publicactions

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/predicate"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// Decision is the result of an approval, or the number of rejected submissions. Submission is the one
// that was waiting, and only a precondition looks at it.
type Decision struct {
	*Done
	Rejected   int
	Submission *db.Submission
}

// Approve publishes a submission as if it had never waited. One transaction removes the submission,
// records the events, and creates the contact of an author who has opted in. It also works while the
// organization accepts nothing from the public. A missing submission is problem.NotFound. If the
// board is no longer public, it is problem.Conflict.
func (s *Service) Approve(ctx context.Context, id publicid.Submission, q change.Request[Decision]) (Decision, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (done Decision, err error) {
		row, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id)))
		if err != nil {
			return done, err
		}
		who, err := s.writer(ctx, row)
		if err != nil {
			return done, err
		}
		w := Wanted{Kind: Kind(row.Kind), Board: row.BoardID, Title: row.Title, Text: row.BodyText}
		if row.PostID != nil {
			w.Post = *row.PostID
		}
		at, err := s.place(ctx, c, w, who)
		if problem.Is(err, problem.NotFound) {
			return done, hidden(ctx, c, id)
		}
		if err != nil {
			return done, err
		}
		if done.Done, err = s.appear(ctx, c, at, who, w); err != nil {
			return done, err
		}
		if err := checkIfMatch(ctx, c, q, id); err != nil {
			return done, err
		}
		c.Audit("approveSubmission", id)
		return done, remove(ctx, c, id)
	})
}

// hidden returns the problem of a submission whose board is not public. The submission stays in the
// queue, unless it has just been deleted with its post or board.
func hidden(ctx context.Context, c *change.Change, id publicid.Submission) error {
	if _, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id))); err != nil {
		return err
	}
	return problem.BoardNotPublic.Problem()
}

// writer returns the author of a submission.
func (s *Service) writer(ctx context.Context, row *db.Submission) (feedback.Visitor, error) {
	who := feedback.Visitor{Spelled: contacts.Spelled{EmailHash: row.EmailHash}}
	if row.PersonSealed == nil {
		return who, nil
	}
	text, err := s.secrets.OpenApart(row.ID.String(), *row.PersonSealed)
	if errors.Is(err, seal.ErrUnreadable) {
		s.log.ErrorContext(ctx, "an opt-in is dropped: the key that it was sealed with is gone", "submission", row.ID)
		return who, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &who.OptIn)
	}
	if err != nil {
		return who, errors.Wrap(err, "open who has opted in")
	}
	return who, nil
}

// Also selects further submissions that a rejection removes.
type Also string

// The selections.
const (
	None        Also = ""
	sameAuthor  Also = "author"
	sameNetwork Also = "network"
)

// Reject removes a submission, and all others of the same author or network if requested. It returns
// the number of removed submissions. Only their lines of the audit trail remain. The network of a
// submission is forgotten after store.NetworkRetention. A missing submission is problem.NotFound.
func (s *Service) Reject(ctx context.Context, id publicid.Submission, also Also, q change.Request[Decision]) (Decision, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (done Decision, err error) {
		row, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id)))
		if err != nil {
			return done, err
		}
		all := []predicate.Submission{submission.ID(id)}
		switch {
		case also == sameAuthor:
			all = append(all, submission.EmailHash(row.EmailHash))
		case also == sameNetwork && row.NetworkHash != nil:
			all = append(all, submission.NetworkHash(*row.NetworkHash))
		}
		// Two rejections of the same source lock in the same order.
		found, err := c.Submission.Query().Where(submission.Or(all...)).Order(db.Asc(submission.FieldID)).
			ForUpdate().Select(submission.FieldID).All(ctx)
		if err != nil {
			return done, errors.Wrap(err, "find the submissions")
		}
		ids := make([]publicid.Submission, len(found))
		for i, one := range found {
			ids[i] = one.ID
			c.Audit("rejectSubmission", one.ID)
		}
		if !slices.Contains(ids, id) {
			return done, problem.Missing("submission")
		}
		if err := checkIfMatch(ctx, c, q, id); err != nil {
			return done, err
		}
		done.Rejected, err = c.Submission.Delete().Where(submission.IDIn(ids...)).Exec(ctx)
		if err != nil {
			return done, errors.Wrap(err, "remove the submissions")
		}
		return done, nil
	})
}

// checkIfMatch locks a submission and checks it against the request's precondition, if it has one. A merge
// may have moved the submission to another post since the use case began.
func checkIfMatch(ctx context.Context, c *change.Change, q change.Request[Decision], id publicid.Submission) error {
	return q.CheckIfMatchOf(c, func() (Decision, error) {
		found, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id)).ForUpdate())
		return Decision{Submission: found}, err
	})
}

// remove deletes a submission. If several transactions do so concurrently, all but one get
// problem.NotFound and roll back. An approval locks this row last. That prevents a deadlock with
// transactions that lock a board or post and then delete its submissions.
func remove(ctx context.Context, c *change.Change, id publicid.Submission) error {
	n, err := c.Submission.Delete().Where(submission.ID(id)).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "remove the submission")
	}
	if n == 0 {
		return problem.Missing("submission")
	}
	return nil
}
