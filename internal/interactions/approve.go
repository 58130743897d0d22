package interactions

import (
	"context"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// Approve has what waits appear, as it would have at once: with its events, and the contact of who
// has opted in, in the transaction in which it waits no longer. Also while the organization takes
// nothing from the public. One that isn't there any more is problem.NotFound, and one whose board
// isn't public any more problem.Conflict.
func (s *Service) Approve(ctx context.Context, id publicid.Submission) (*Done, error) {
	var done *Done
	err := s.changes.Run(ctx, func(c *change.Change) error {
		row, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id)))
		if err != nil {
			return err
		}
		who, err := s.writer(ctx, row)
		if err != nil {
			return err
		}
		w := Wanted{Kind: Kind(row.Kind), Board: row.BoardID, Title: row.Title, Text: row.BodyText}
		if row.PostID != nil {
			w.Post = *row.PostID
		}
		at, err := s.place(ctx, c, w)
		if problem.Is(err, problem.NotFound) {
			return hidden(ctx, c, id)
		}
		if err != nil {
			return err
		}
		if done, err = s.appear(ctx, c, at, who, w); err != nil {
			return err
		}
		c.Audit("approveSubmission", id)
		return remove(ctx, c, id)
	})
	return done, err
}

// hidden is the problem of something whose place isn't public: unless it went with its post or
// board just now, it goes on waiting.
func hidden(ctx context.Context, c *change.Change, id publicid.Submission) error {
	if _, err := onlySubmission(ctx, c.Submission.Query().Where(submission.ID(id))); err != nil {
		return err
	}
	return problem.New(problem.Conflict, "The board isn't public any more.").With("reason", "board_not_public")
}

// writer is who has written what waits.
func (s *Service) writer(ctx context.Context, row *db.Submission) (feedback.Visitor, error) {
	who := feedback.Visitor{Spelled: store.Spelled{EmailHash: row.EmailHash}}
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

// Reject removes what waits without a trace, but for the line of the audit trail.
func (s *Service) Reject(ctx context.Context, id publicid.Submission) error {
	return s.changes.Run(ctx, func(c *change.Change) error {
		c.Audit("rejectSubmission", id)
		return remove(ctx, c, id)
	})
}

// remove has something wait no longer. Of several who do so at once all but one get
// problem.NotFound, and so nothing of what they did is committed. It is the last row that an approval
// locks, so that nobody waits in a circle who holds a board or a post and ends what waits for it.
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
