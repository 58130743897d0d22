package feedback

import (
	"context"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/publicid"
)

// Ballot is a person at a locked post that takes the person's vote. Only mayVote makes one, so that
// every vote passes its rules.
type Ballot struct {
	on Place
	by voter
}

// Shown returns the post and its board, as a page shows them.
func (b Ballot) Shown() (*db.Post, *db.Board) { return b.on.Post, b.on.board }

// mayVote is the gate of votes. It has the rules about the person, the post and the board.
func mayVote(at Place, by voter) (Ballot, error) {
	return Ballot{at, by}, at.shownTo(by.visitor)
}

// LockForVote locks a post, or the target of its merge, for the vote of a visitor. A visitor who has
// opted in gets a contact.
func (s *Service) LockForVote(ctx context.Context, c *change.Change, on publicid.Post, who Visitor) (b Ballot, err error) {
	at, err := lockVisitorsPlace(ctx, c, on)
	if err != nil {
		return b, err
	}
	by, err := s.as(ctx, c, who, "public_vote")
	if err != nil {
		return b, err
	}
	// Note this spelling first, so that the other spellings also find older votes.
	if err := contacts.NoteSpelling(ctx, c.Tx, who.Spelled); err != nil {
		return b, err
	}
	if by.spellings, err = contacts.SpellingsTx(ctx, c.Tx, who.Spelled); err != nil {
		return b, err
	}
	return mayVote(at, by)
}
