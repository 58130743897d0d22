package publicactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"net/netip"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/predicate"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/wordlist"
)

const (
	// maxWaiting is the maximum length of an organization's moderation queue, more than a moderator reads
	// in a day. A longer queue would bury genuine feedback under a flood.
	maxWaiting = 1000
	// The shares of the queue. A flood of one author, of one network or on one board leaves room for
	// the others.
	maxWaitingOfAuthor, maxWaitingOfNetwork, maxWaitingOfBoard = 20, maxWaiting / 10, maxWaiting / 2
)

// mustWait returns the reason for moderation, or "" if the action needs none.
func (s *Service) mustWait(ctx context.Context, c *change.Change, on *db.Board, w Wanted) (submission.Reason, error) {
	if w.Kind == Vote {
		return "", nil
	}
	if on.Moderated {
		return submission.ReasonModerated, nil
	}
	blocked, err := c.WordList.Query().Only(ctx)
	if db.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", errors.Wrap(err, "load the blocked words")
	}
	folded := make([]string, len(blocked.Words))
	for i, word := range blocked.Words {
		folded[i] = wordlist.Folded(word)
	}
	if wordlist.In(w.Title, folded) || wordlist.In(w.Text, folded) {
		return submission.ReasonBlockedWord, nil
	}
	return "", nil
}

// hold puts a visitor's post or comment into the moderation queue. A full queue is problem.Forbidden,
// and so is a used up share of the author, the network or the board.
func (s *Service) hold(
	ctx context.Context, c *change.Change, at *target, who feedback.Visitor, from netip.Prefix, w Wanted, reason submission.Reason,
) (*Done, error) {
	// The lock keeps two visitors from taking the last place.
	if err := c.LockOrganization(ctx); err != nil {
		return nil, err
	}
	shares := append(sharesOf(at.Board.ID), share{maxWaitingOfAuthor, []predicate.Submission{submission.EmailHash(who.EmailHash)}})
	network := s.networkHash(c.Caller.Organization.ID, from)
	if network != nil {
		shares = append(shares, share{maxWaitingOfNetwork, []predicate.Submission{submission.NetworkHash(network)}})
	}
	if room, err := hasRoom(ctx, c.Submission, shares); err != nil {
		return nil, err
	} else if !room {
		return nil, problem.QueueFull.Problem()
	}
	id := publicid.NewSubmission()
	row := c.Submission.Create().SetID(id).SetKind(submission.Kind(w.Kind)).SetReason(reason).SetBoardID(at.Board.ID).
		SetTitle(w.Title).SetBodyText(w.Text).SetEmailHash(who.EmailHash)
	if network != nil {
		row.SetNetworkHash(network)
	}
	if at.Post != nil {
		row.SetPostID(at.Post.ID)
	}
	if who.OptIn != nil {
		text, err := json.Marshal(who.OptIn)
		if err != nil {
			return nil, errors.Wrap(err, "encode who has opted in")
		}
		row.SetPersonSealed(s.secrets.SealApart(id.String(), string(text)))
	}
	if err := row.Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "insert the submission")
	}
	at.Waits = true
	return &at.Done, nil
}

// networkHash identifies a network within an organization. It is nil for an unknown network.
func (s *Service) networkHash(of publicid.Organization, from netip.Prefix) []byte {
	if !from.IsValid() {
		return nil
	}
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("network of submission\x00" + of.String() + "\x00"))
	mac.Write(networkName(from))
	return mac.Sum(nil)
}

// HasRoom reports whether the organization's moderation queue accepts more submissions for a board.
func (s *Service) HasRoom(ctx context.Context, on publicid.Board) (bool, error) {
	return hasRoom(ctx, s.store.Client().Submission, sharesOf(on))
}

// share is a part of the moderation queue, with the maximum number of submissions in it.
type share struct {
	most int
	of   []predicate.Submission
}

// sharesOf returns the shares that all submissions for a board use.
func sharesOf(on publicid.Board) []share {
	return []share{{maxWaiting, nil}, {maxWaitingOfBoard, []predicate.Submission{submission.BoardID(on)}}}
}

func hasRoom(ctx context.Context, queue *db.SubmissionClient, shares []share) (bool, error) {
	for _, s := range shares {
		n, err := queue.Query().Where(s.of...).Count(ctx)
		if err != nil {
			return false, errors.Wrap(err, "count the waiting submissions")
		}
		if n >= s.most {
			return false, nil
		}
	}
	return true, nil
}

// Submissions lists the moderation queue, oldest first. The parameter on selects a board, and nil
// selects all. A missing board is problem.NotFound.
func (s *Service) Submissions(ctx context.Context, on *publicid.Board, q page.Query) (page.Page[*db.Submission], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("submissions", on)
	last := page.After[publicid.Submission](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Submission]{}, err
	}
	var where []predicate.Submission
	if on != nil {
		if _, err := s.feedback.Board(ctx, *on); problem.Is(err, problem.NotFound) {
			return page.Page[*db.Submission]{}, problem.MissingIn("boardId", "board")
		} else if err != nil {
			return page.Page[*db.Submission]{}, err
		}
		where = append(where, submission.BoardID(*on))
	}
	if last != nil {
		where = append(where, submission.IDGT(*last))
	}
	read := func(limit, most int, where ...predicate.Submission) ([]*listedSubmission, error) {
		return submissionPages.Read(ctx, s.store, page.Selection[predicate.Submission]{
			Where: where, Order: "submissions.id", Limit: limit, Most: most,
		})
	}
	rows, err := read(limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*db.Submission]{}, errors.Wrap(err, "list what waits")
	}
	place := page.ByID(func(r *listedSubmission) string { return r.ID.String() })
	found, err := page.Filled(ctx, page.LargeRows[publicid.Submission, *listedSubmission]{
		List: list, Memory: q.Memory, Place: place, ID: func(r *listedSubmission) publicid.Submission { return r.ID },
		Load: func(ids ...publicid.Submission) ([]*listedSubmission, error) {
			return read(len(ids), page.All, submission.IDIn(ids...))
		},
		Size: func(r *listedSubmission) int { return page.JSONSize(r.BodyText) },
	}, page.Cut(list, rows, limit, place))
	return page.Each(found, func(r *listedSubmission) *db.Submission { return &r.Submission }), err
}

// Submission loads a submission from the moderation queue.
func (s *Service) Submission(ctx context.Context, id publicid.Submission) (*db.Submission, error) {
	return onlySubmission(ctx, s.store.Client().Submission.Query().Where(submission.ID(id)))
}

func onlySubmission(ctx context.Context, query *db.SubmissionQuery) (*db.Submission, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("submission")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the submission")
	}
	return found, nil
}
