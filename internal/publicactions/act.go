package publicactions

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// This file holds the actions of visitors whose browser is remembered.

// Act performs the action of a visitor whose address is verified, without an e-mail. A repeated form
// with the same stamp gets the result of the first one, for example after a double click. An empty
// stamp turns that off. Too many actions are problem.RateLimited.
func (s *Service) Act(ctx context.Context, by Sender, w Wanted, stamp string) (*Done, error) {
	var bad problem.Fields
	w.checkBy(&bad, &by)
	w.check(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	if err := s.mayAct(ctx, by); err != nil {
		return nil, err
	}
	if stamp == "" || w.Kind == Vote { // a person has at most one vote per post, and may retract it in between
		return s.act(ctx, by, w, change.Request[*Done]{})
	}
	for {
		done, err := s.actOnce(ctx, by, w, s.filledForm(by, w, stamp))
		if !problem.Is(err, problem.IdempotencyInProgress) {
			return done, err
		}
		select { // the second press waits for the result of the first
		case <-ctx.Done():
			return nil, err
		case <-time.After(pressPause):
		}
	}
}

// pressPause is the pause between two checks for the result of a button's first press.
const pressPause = 50 * time.Millisecond

// filledForm returns the idempotency key of a filled-in form.
func (s *Service) filledForm(by Sender, w Wanted, stamp string) (id [sha256.Size]byte) {
	text, err := json.Marshal([]any{s.emailHash(by.Email), w, w.OptIn, stamp})
	if err != nil {
		panic(err) // texts and ids
	}
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("filled form\x00"))
	mac.Write(text)
	return [sha256.Size]byte(mac.Sum(nil))
}

// actOnce is act for a form that may be sent several times.
func (s *Service) actOnce(ctx context.Context, by Sender, w Wanted, form [sha256.Size]byte) (*Done, error) {
	done, err := s.act(ctx, by, w, change.Request[*Done]{Key: &change.Key{ID: form, Fingerprint: form}, Answer: keptDone})
	before := (*change.ReplayedError)(nil)
	if !errors.As(err, &before) {
		return done, err
	}
	if string(before.Body) == waits {
		return &Done{Waits: true}, nil
	}
	found, err := s.feedback.Post(ctx, publicid.Read[publicid.Post](string(before.Body)))
	if err != nil {
		return nil, err
	}
	return &Done{Post: found.Post}, nil
}

// keptDone returns the answer that is kept for a repetition: the post's id, or waits.
func keptDone(done *Done) (change.Answer, error) {
	kept := waits
	if !done.Waits {
		kept = done.Post.ID.String()
	}
	return change.Answer{Status: http.StatusOK, Body: []byte(kept)}, nil
}

// waits is the kept answer for an action that waits for moderation.
const waits = "waits"

func (s *Service) act(ctx context.Context, by Sender, w Wanted, q change.Request[*Done]) (*Done, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Done, error) { return s.perform(ctx, c, by, w) })
}

// Retract removes the visitor's vote from a post, if there is one.
func (s *Service) Retract(ctx context.Context, by Sender, on publicid.Post) error {
	if err := s.mayAct(ctx, by); err != nil {
		return err
	}
	_, err := change.Run(ctx, s.changes, change.Request[publicid.Post]{}, func(c *change.Change) (publicid.Post, error) {
		if c.Caller.Organization.PublicClosed {
			return on, problem.PublicClosed.Problem()
		}
		return on, s.feedback.RetractVisitorsVote(ctx, c, on, by.Email)
	})
	return err
}

// HasVoted reports whether the visitor has a vote on a post.
func (s *Service) HasVoted(ctx context.Context, by Sender, on *db.Post) (bool, error) {
	return s.feedback.HasVoted(ctx, on, by.Email)
}
