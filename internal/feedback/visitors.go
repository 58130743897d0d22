package feedback

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// What end-users do on public boards, each in a transaction of its caller, who knows that the
// address is theirs. What isn't on a public board is problem.NotFound.

// Visitor is an end-user of public boards. Without the opt-in nothing is kept of them but the
// hash of the address.
type Visitor struct {
	Email, Name string
	OptIn       bool
}

// as is the visitor as a voter. An opt-in has them be a contact, who came in by the source.
func (s *Service) as(ctx context.Context, c *change.Change, who Visitor, source string) (voter, error) {
	hash := s.emailHash(who.Email)
	by := voter{emailHash: &hash}
	if !who.OptIn {
		return by, nil
	}
	found, err := s.contacts.OptIn(ctx, c, who.Email, who.Name, source)
	if found != nil {
		by.contact = &found.ID
	}
	return by, err
}

// CastVisitorsVote puts a visitor's vote on a post, or on the one that it was merged into, and
// records its event. The person's vote that is there stays.
func (s *Service) CastVisitorsVote(ctx context.Context, c *change.Change, on publicid.Post, who Visitor) (*db.Post, error) {
	p, err := lockPublic(ctx, c, on)
	if err != nil {
		return nil, err
	}
	by, err := s.as(ctx, c, who, "public_vote")
	if err != nil {
		return nil, err
	}
	_, err = castVote(ctx, c, p, by)
	return p, err
}

// RetractVisitorsVote takes the person's vote off, if there is one.
func (s *Service) RetractVisitorsVote(ctx context.Context, c *change.Change, on publicid.Post, email string) error {
	p, err := lockPublic(ctx, c, on)
	if err != nil {
		return err
	}
	hash := s.emailHash(email)
	_, err = retract(ctx, c, p, voter{emailHash: &hash})
	return err
}

// CreateVisitorsPost puts a visitor's post on a board and records post.created.
func (s *Service) CreateVisitorsPost(ctx context.Context, c *change.Change, on publicid.Board, title, text string, who Visitor) (*db.Post, error) {
	by, err := s.as(ctx, c, who, "public_post")
	if err != nil {
		return nil, err
	}
	if _, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(on), board.Public(true)).ForShare(store.KeyShare)); err != nil {
		return nil, err
	}
	author, err := guestOf(ctx, c, by.contact, by.emailHash)
	if err != nil {
		return nil, err
	}
	row := newPost(on, NewPost{Title: strings.TrimSpace(title), Body: Body{Text: text}})
	row.OrganizationID, row.AuthorUserID, row.ContactID = author.OrganizationID, &author.ID, by.contact
	if err := insertPost(ctx, c, row); err != nil {
		return nil, err
	}
	return row, c.Record(event.PostCreated, postCreated(row))
}

// CreateVisitorsComment adds a visitor's comment to a post, or to the one that it was merged into,
// and records comment.created.
func (s *Service) CreateVisitorsComment(ctx context.Context, c *change.Change, on publicid.Post, text string, who Visitor) (*db.Post, error) {
	p, err := lockPublic(ctx, c, on)
	if err != nil {
		return nil, err
	}
	by, err := s.as(ctx, c, who, "public_comment")
	if err != nil {
		return nil, err
	}
	author, err := guestOf(ctx, c, by.contact, by.emailHash)
	if err != nil {
		return nil, err
	}
	row, err := c.Comment.Create().SetPostID(p.ID).SetBodyText(text).SetAuthorUserID(author.ID).
		SetNillableContactID(by.contact).SetEmailHash(*by.emailHash).Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "insert the comment")
	}
	if err := count(ctx, c, p, 0, 1); err != nil {
		return nil, err
	}
	return p, c.Record(event.CommentCreated, commentCreated(p.BoardID, row))
}

// HasVoted reports whether the person with an address has a vote on a post, or on the one that it
// was merged into.
func (s *Service) HasVoted(ctx context.Context, on *db.Post, email string) (bool, error) {
	target := on.ID
	if on.MergedIntoID != nil {
		target = *on.MergedIntoID
	}
	found, err := store.Exists(ctx, s.store.Client().Vote.Query().Where(vote.PostID(target), vote.EmailHash(s.emailHash(email))))
	if err != nil {
		return false, errors.Wrap(err, "look for the vote")
	}
	return found, nil
}

// lockPublic is lockVotable for the posts of public boards.
func lockPublic(ctx context.Context, c *change.Change, on publicid.Post) (*db.Post, error) {
	p, err := lockVotable(ctx, c, on)
	if err != nil {
		return nil, err
	}
	public, err := store.Exists(ctx, c.Board.Query().Where(board.ID(p.BoardID), board.Public(true)))
	if err != nil {
		return nil, errors.Wrap(err, "look up the board")
	}
	if !public {
		return nil, problem.Missing("post")
	}
	return p, nil
}
