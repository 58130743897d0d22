package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// newVote is a request for a vote.
type newVote struct {
	on publicid.Post
	// The contact who votes. If it is not named, the member votes.
	who    contacts.Person
	member voter
}

// CastVote is a vote on a post. Fresh is true if CastVote has just added it.
type CastVote struct {
	*db.Vote
	Fresh bool
}

// CastVote adds the vote of the caller, or of the given contact, to a post and records
// vote.created. If the post is merged, the vote goes to the target of the merge. If the person has
// voted already, it changes nothing.
func (s *Service) CastVote(
	ctx context.Context, on publicid.Post, who contacts.Person, q change.Request[*CastVote],
) (*CastVote, error) {
	var bad problem.Fields
	who.Check(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return s.votes.Do(ctx, newVote{on, who, s.member(change.CallerOf(ctx).User)}, q)
}

// castVotes makes the votes of one or more callers. A vote of a contact comes alone, because it may
// wait for the contact or make it.
func (s *Service) castVotes(ctx context.Context, c *change.Change, in []newVote) ([]change.Result[*CastVote], error) {
	posts := make([]publicid.Post, len(in))
	for i, v := range in {
		posts[i] = v.on
	}
	locked, err := lockPlaces(ctx, c, posts)
	if err != nil {
		return nil, err
	}
	out := make([]change.Result[*CastVote], len(in))
	var ballots []Ballot
	var callers []int
	for i, v := range in {
		if out[i].Err = locked[i].err; out[i].Err != nil {
			continue
		}
		by := v.member
		if v.who.Named() {
			found, err := s.contacts.Keep(ctx, c, v.who)
			if err != nil {
				return nil, err
			}
			by = contactAsVoter(found)
		}
		b, err := mayVote(locked[i].Place, by)
		if err != nil {
			out[i].Err = err
			continue
		}
		ballots, callers = append(ballots, b), append(callers, i)
	}
	votes, err := cast(ctx, c, ballots)
	if err != nil {
		return nil, err
	}
	for n, v := range votes {
		i := callers[n]
		if out[i].Out = v; v.Fresh {
			out[i].Events = []change.Event{{Type: event.VoteCreated, At: v.CreatedAt, Payload: voteCreated(ballots[n].on.BoardID, v.Vote)}}
		}
	}
	return out, nil
}

// cast adds the votes to locked posts, unless the person has voted already. The look for older votes
// comes after the lock, in a statement of its own: only then does it see the votes of a transaction
// that held the lock before.
func cast(ctx context.Context, c *change.Change, ballots []Ballot) ([]*CastVote, error) {
	if len(ballots) == 0 {
		return nil, nil
	}
	before, err := votesOf(ctx, c, ballots)
	if err != nil {
		return nil, err
	}
	out := make([]*CastVote, len(ballots))
	var fresh []*db.Vote
	var rows []*db.VoteCreate
	counts := tally{}
	for i, b := range ballots {
		same := func(v *db.Vote) bool { return v.PostID == b.on.ID && b.by.cast(v) }
		if len(before[i]) > 0 {
			out[i] = &CastVote{Vote: before[i][0]}
			continue
		}
		if at := slices.IndexFunc(fresh, same); at >= 0 { // twice in one batch
			out[i] = &CastVote{Vote: fresh[at]}
			continue
		}
		v := b.by.row(b.on.OrganizationID, b.on.ID)
		row := c.Vote.Create().SetID(v.ID).SetPostID(v.PostID).SetNillableUserID(v.UserID).SetNillableContactID(v.ContactID).
			SetCreatedAt(v.CreatedAt)
		if v.EmailHash != nil {
			row.SetEmailHash(*v.EmailHash)
		}
		fresh, rows, out[i] = append(fresh, v), append(rows, row), &CastVote{Vote: v, Fresh: true}
		counts.add(PostCount{Post: v.PostID, Votes: 1, At: &v.CreatedAt})
	}
	if len(rows) == 0 {
		return out, nil
	}
	if _, err := postgres.InsertWithCommit(ctx, c.Vote.CreateBulk, rows); err != nil {
		return nil, errors.Wrap(err, "insert the votes")
	}
	return out, counts.write(ctx, c)
}

func voteCreated(on publicid.Board, v *db.Vote) event.Payload {
	return &event.VoteCreatedPayload{
		BoardHead: event.BoardHead{BoardID: on},
		Vote:      event.Vote{ID: v.ID, PostID: v.PostID, UserID: v.UserID, CreatedAt: v.CreatedAt},
	}
}

// RetractedVote is the vote that RetractVote removed, or nil if there was none, and its post.
type RetractedVote struct {
	*db.Vote
	From publicid.Post
}

// RetractVote removes the vote of the caller, or of the given contact, from a post or from the
// target of its merge. Retracting twice is no error.
func (s *Service) RetractVote(
	ctx context.Context, on publicid.Post, who contacts.Person, q change.Request[RetractedVote],
) (RetractedVote, error) {
	var bad problem.Fields
	who.Check(&bad)
	if err := bad.Err(); err != nil {
		return RetractedVote{}, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (RetractedVote, error) {
		p, err := lockPlace(ctx, c, on)
		if err != nil {
			return RetractedVote{}, err
		}
		by := s.member(c.Caller.User)
		if who.Named() {
			found, err := s.contacts.Keep(ctx, c, who)
			if who.ExternalUserID != nil && problem.Is(err, problem.NotFound) {
				return RetractedVote{From: p.ID}, nil // an unknown contact has no vote
			}
			if err != nil {
				return RetractedVote{}, err
			}
			by = contactAsVoter(found)
		}
		taken, err := retract(ctx, c, p, by)
		return RetractedVote{taken, p.ID}, err
	})
}

// retract removes a person's votes from a locked post. It returns one of them, or nil.
func retract(ctx context.Context, c *change.Change, p Place, by voter) (*db.Vote, error) {
	found, err := votesOf(ctx, c, []Ballot{{p, by}})
	if err != nil || len(found[0]) == 0 {
		return nil, err
	}
	there := found[0]
	voteIDs := make([]publicid.Vote, len(there))
	for i, v := range there {
		voteIDs[i] = v.ID
	}
	if _, err := c.Vote.Delete().Where(vote.IDIn(voteIDs...)).Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "delete the vote")
	}
	return there[0], tally{p.ID: {Post: p.ID, Votes: -len(there)}}.write(ctx, c) // a retraction is not activity
}
