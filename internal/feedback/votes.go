package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// newVote is a vote of a group, before it is cast.
type newVote struct {
	on publicid.Post
	voter
}

// CastVote is a vote on a post. Fresh is true if CastVote has just added it.
type CastVote struct {
	*db.Vote
	Fresh bool
}

// CastVote adds the vote of the caller, or of the given contact, to a post and records
// vote.created. If the post is merged, the vote goes to the target of the merge. If the person has
// voted already, it changes nothing.
func (s *Service) CastVote(ctx context.Context, on publicid.Post, who contacts.Person) (*CastVote, error) {
	if who.Named() {
		return s.castContactsVote(ctx, on, who)
	}
	in := newVote{on: on, voter: s.member(change.CallerOf(ctx).User)}
	cast, err := s.voteGroup.Do(ctx, in)
	if err != nil || cast != nil {
		return cast, err
	}
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		cast, err = castVote(ctx, c, p, in.voter)
		return err
	})
	return cast, err
}

// castContactsVote is CastVote for a contact.
func (s *Service) castContactsVote(ctx context.Context, on publicid.Post, who contacts.Person) (cast *CastVote, err error) {
	var bad problem.Fields
	who.Check(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		found, err := s.contacts.Keep(ctx, c, who)
		if err != nil {
			return err
		}
		cast, err = castVote(ctx, c, p, contactAsVoter(found))
		return err
	})
	return cast, err
}

// castVotes makes the votes of a group. It leaves out a vote if its post does not exist or is
// merged.
func castVotes(ctx context.Context, j *change.Joint, in []newVote) ([]*CastVote, error) {
	posts, voters := make([]publicid.Post, len(in)), make([]store.Voter, len(in))
	for i, v := range in {
		posts[i], voters[i] = v.on, store.Voter{Member: *v.user, EmailHash: *v.emailHash}
	}
	var found []store.LockedPost
	var before []*db.Vote
	j.LockPosts(posts, j.Wait, &found)
	j.Votes(posts, voters, &before)
	if err := j.Read(ctx); err != nil {
		return nil, err
	}
	locked := votable(found)
	out := make([]*CastVote, len(in))
	var fresh []*db.Vote
	for i, v := range in {
		p, ok := locked[v.on]
		if !ok || j.IsTaken(i) {
			continue
		}
		if at := slices.IndexFunc(before, func(b *db.Vote) bool { return b.PostID == v.on && v.cast(b) }); at >= 0 {
			out[i] = &CastVote{Vote: before[at]}
			continue
		}
		row := v.row(j.Organization, p.ID)
		fresh, out[i] = append(fresh, row), &CastVote{Vote: row, Fresh: true}
		if err := j.Record(i, row.ID.UUID(), row.CreatedAt, voteCreated(p.Board, row)); err != nil {
			return nil, err
		}
	}
	if len(fresh) > 0 {
		j.InsertVotes(fresh, j.Happened, &j.Made)
	}
	return out, nil
}

// castVote makes a vote on a locked post.
func castVote(ctx context.Context, c *change.Change, on *db.Post, by voter) (*CastVote, error) {
	before, err := votesOf(ctx, c, on.ID, by)
	if err != nil {
		return nil, err
	}
	if len(before) > 0 {
		return &CastVote{Vote: before[0]}, nil
	}
	cast := by.row(on.OrganizationID, on.ID)
	row := c.Vote.Create().SetID(cast.ID).SetPostID(on.ID).SetNillableUserID(by.user).SetNillableContactID(by.contact).
		SetCreatedAt(cast.CreatedAt)
	if by.emailHash != nil {
		row.SetEmailHash(*by.emailHash)
	}
	if err := row.Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "insert the vote")
	}
	if err := count(ctx, c, on, 1, 0); err != nil {
		return nil, err
	}
	return &CastVote{Vote: cast, Fresh: true}, c.Record(event.VoteCreated, voteCreated(on.BoardID, cast))
}

func voteCreated(on publicid.Board, v *db.Vote) event.Payload {
	return &event.VoteCreatedPayload{
		BoardHead: event.BoardHead{BoardID: on},
		Vote:      event.Vote{ID: v.ID, PostID: v.PostID, UserID: v.UserID, CreatedAt: v.CreatedAt},
	}
}

// votable returns the locked posts that are not merged, by id.
func votable(found []store.LockedPost) map[publicid.Post]store.LockedPost {
	byID := make(map[publicid.Post]store.LockedPost, len(found))
	for _, p := range found {
		if !p.Merged {
			byID[p.ID] = p
		}
	}
	return byID
}

// RetractVote removes the vote of the caller, or of the given contact, from a post or from the
// target of its merge. It returns the removed vote and the id of that post. The vote is nil if
// there was none, so retracting twice is no error.
func (s *Service) RetractVote(ctx context.Context, on publicid.Post, who contacts.Person) (taken *db.Vote, from publicid.Post, err error) {
	var bad problem.Fields
	who.Check(&bad)
	if err := bad.Err(); err != nil {
		return nil, from, err
	}
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		from, taken = p.ID, nil
		by := s.member(c.Caller.User)
		if who.Named() {
			found, err := s.contacts.Keep(ctx, c, who)
			if who.ExternalUserID != nil && problem.Is(err, problem.NotFound) {
				return nil // an unknown contact has no vote
			}
			if err != nil {
				return err
			}
			by = contactAsVoter(found)
		}
		taken, err = retract(ctx, c, p, by)
		return err
	})
	return taken, from, err
}

// retract removes a person's votes from a locked post. It returns one of them, or nil.
func retract(ctx context.Context, c *change.Change, p *db.Post, by voter) (*db.Vote, error) {
	there, err := votesOf(ctx, c, p.ID, by)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	voteIDs := make([]publicid.Vote, len(there))
	for i, v := range there {
		voteIDs[i] = v.ID
	}
	if _, err := c.Vote.Delete().Where(vote.IDIn(voteIDs...)).Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "delete the vote")
	}
	return there[0], count(ctx, c, p, -len(there), 0)
}

// Votes lists the votes on a post, newest first, with their contacts.
func (s *Service) Votes(ctx context.Context, on publicid.Post, q page.Query) (page.Page[*db.Vote], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("votes", on)
	last := page.After[publicid.Vote](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Vote]{}, err
	}
	if err := s.mustHavePost(ctx, on); err != nil {
		return page.Page[*db.Vote]{}, err
	}
	query := s.store.Client().Vote.Query().Where(vote.PostID(on)).Order(db.Desc(vote.FieldID)).Limit(limit + 1).WithContact(shownOfVoter)
	if last != nil {
		query.Where(vote.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Vote]{}, errors.Wrap(err, "list votes")
	}
	for _, v := range rows {
		if v.Edges.Contact == nil {
			v.ContactID = nil // deleted between the statement that reads votes and the one that reads contacts
		}
	}
	return page.Cut(list, rows, limit, page.ByID(func(v *db.Vote) string { return v.ID.String() })), nil
}

// count adds to the counters of a locked post. A retraction is not activity.
func count(ctx context.Context, c *change.Change, p *db.Post, votes, comments int) error {
	update := c.Post.Update().Where(post.ID(p.ID)).AddVoteCount(votes).AddCommentCount(comments)
	if votes+comments > 0 {
		update.SetLastActivityAt(store.Now())
	}
	if err := update.Exec(ctx); err != nil {
		return errors.Wrap(err, "count on the post")
	}
	return nil
}
