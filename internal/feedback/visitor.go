package feedback

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// These methods are the actions of end-users on public boards. Each runs in its caller's
// transaction, and the caller has verified the address. A resource that is not on a public board is
// problem.NotFound.

// Visitor is an end-user of public boards, identified by the hash of the address.
type Visitor struct {
	// Spelled needs its Mailbox only for votes, because a mailbox has one vote.
	contacts.Spelled
	// OptIn is set if the visitor has opted in to e-mails. Without it, only the hash of the address
	// is stored.
	OptIn *OptIn
}

// OptIn has the values for a visitor's contact.
type OptIn struct {
	Email string `json:"email"`
	Name  string `json:"name"`
	// Language is the language of the page on which the visitor opted in, and At is the time.
	Language string    `json:"language,omitempty"`
	At       time.Time `json:"at"`
}

// as returns the visitor as a voter. An opt-in makes or finds the visitor's contact with this
// source.
func (s *Service) as(ctx context.Context, c *change.Change, who Visitor, source string) (voter, error) {
	by := voter{emailHash: &who.EmailHash, visitor: true}
	if who.OptIn == nil {
		return by, nil
	}
	found, err := s.contacts.OptIn(ctx, c, who.OptIn.Email, who.OptIn.Name, source)
	by.contact = found
	return by, err
}

// CastVisitorsVote adds a visitor's vote and records its event. If the person has voted already, it
// changes nothing.
func (s *Service) CastVisitorsVote(ctx context.Context, c *change.Change, b Ballot) error {
	votes, err := cast(ctx, c, []Ballot{b})
	if err != nil || !votes[0].Fresh {
		return err
	}
	return c.Record(event.VoteCreated, voteCreated(b.on.BoardID, votes[0].Vote))
}

// RetractVisitorsVote removes the person's vote, if there is one.
func (s *Service) RetractVisitorsVote(ctx context.Context, c *change.Change, on publicid.Post, email string) error {
	at, err := lockVisitorsPlace(ctx, c, on)
	if err != nil {
		return err
	}
	spellings, err := contacts.SpellingsTx(ctx, c.Tx, s.Spelled(email))
	if err != nil {
		return err
	}
	_, err = retract(ctx, c, at, voter{spellings: spellings, visitor: true})
	return err
}

// CreateVisitorsPost adds a visitor's post to a board and records post.created.
func (s *Service) CreateVisitorsPost(
	ctx context.Context, c *change.Change, on PostableBoard, title, text string, who Visitor,
) (*db.Post, error) {
	by, err := s.as(ctx, c, who, "public_post")
	if err != nil {
		return nil, err
	}
	author, err := guestOf(ctx, c, by.contactID(), by.emailHash)
	if err != nil {
		return nil, err
	}
	row := newPost(on.board.ID, NewPost{Title: strings.TrimSpace(title), Body: Body{Text: text}})
	row.OrganizationID, row.AuthorUserID, row.ContactID = author.OrganizationID, &author.ID, by.contactID()
	places, err := keepPlaces(ctx, c, []*db.Post{row})
	if err != nil {
		return nil, err
	}
	if err := insertPosts(ctx, c, places.Taken, []freshPost{{on, &Post{Post: row}}}); err != nil {
		return nil, err
	}
	return row, c.Record(event.PostCreated, postCreated(row))
}

// CreateVisitorsComment adds a visitor's comment to a post and records comment.created.
func (s *Service) CreateVisitorsComment(
	ctx context.Context, c *change.Change, on CommentablePost, text string, who Visitor,
) (*db.Comment, error) {
	by, err := s.as(ctx, c, who, "public_comment")
	if err != nil {
		return nil, err
	}
	author, err := guestOf(ctx, c, by.contactID(), by.emailHash)
	if err != nil {
		return nil, err
	}
	at := postgres.Now()
	row := &db.Comment{
		ID: publicid.NewComment(), OrganizationID: on.at.OrganizationID, PostID: on.at.ID, BodyText: text,
		AuthorUserID: &author.ID, ContactID: by.contactID(), EmailHash: by.emailHash, CreatedAt: at, UpdatedAt: at,
	}
	if err := insertComments(ctx, c, []freshComment{{on, row}}); err != nil {
		return nil, err
	}
	return row, c.Record(event.CommentCreated, commentCreated(on.at.BoardID, row))
}

// HasVoted reports whether the person with an address has voted on a post, or on the target of its
// merge.
func (s *Service) HasVoted(ctx context.Context, on *db.Post, email string) (bool, error) {
	target := on.ID
	if on.MergedIntoID != nil {
		target = *on.MergedIntoID
	}
	spellings, err := contacts.Spellings(ctx, s.store, s.Spelled(email))
	if err != nil {
		return false, err
	}
	found, err := postgres.Exists(ctx, s.store.Client().Vote.Query().Where(vote.PostID(target), vote.EmailHashIn(spellings...)))
	if err != nil {
		return false, errors.Wrap(err, "look for the vote")
	}
	return found, nil
}
