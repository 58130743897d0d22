package feedback

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// newVote is what the caller of CastVote wants.
type newVote struct {
	on        publicid.Post
	voter     publicid.User
	emailHash []byte
}

// CastVote is a vote that is on a post. Fresh says that it wasn't before.
type CastVote struct {
	*db.Vote
	Fresh bool
}

// CastVote puts the caller's vote on a post, or on the one that it was merged
// into, and records vote.created. When it is there already nothing changes.
func (s *Service) CastVote(ctx context.Context, on publicid.Post) (*CastVote, error) {
	user := change.CallerOf(ctx).User
	in := newVote{on: on, voter: user.ID, emailHash: s.emailHash(user.Email)}
	cast, err := s.voteGroup.Do(ctx, in)
	if err == nil && cast == nil {
		return s.castVote(ctx, in)
	}
	return cast, err
}

// castVotes makes those votes whose posts are there and not merged into others.
func castVotes(ctx context.Context, j *change.Joint, in []newVote) ([]*CastVote, error) {
	posts, voters := make([]publicid.Post, len(in)), make([]publicid.User, len(in))
	for i, v := range in {
		posts[i], voters[i] = v.on, v.voter
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
		if at := slices.IndexFunc(before, func(b *db.Vote) bool { return b.PostID == v.on && *b.UserID == v.voter }); at >= 0 {
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

// castVote makes a vote by itself, whatever became of its post.
func (s *Service) castVote(ctx context.Context, in newVote) (cast *CastVote, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, in.on)
		if err != nil {
			return err
		}
		cast = &CastVote{Vote: in.row(p.OrganizationID, p.ID)}
		cast.Fresh, err = store.Inserted(c.Vote.Create().
			SetID(cast.ID).SetPostID(p.ID).SetUserID(in.voter).SetEmailHash(in.emailHash).SetCreatedAt(cast.CreatedAt).
			OnConflict(sql.DoNothing()).Exec(ctx))
		if err != nil {
			return err
		}
		if !cast.Fresh {
			cast.Vote, err = c.Vote.Query().Where(vote.PostID(p.ID), vote.UserID(in.voter)).Only(ctx)
			return err
		}
		if err := count(ctx, c, p, 1, 0); err != nil {
			return err
		}
		return c.Record(ctx, event.VoteCreated, voteCreated(p.BoardID, cast.Vote))
	})
	return cast, err
}

func (v newVote) row(of publicid.Organization, on publicid.Post) *db.Vote {
	return &db.Vote{
		ID: publicid.NewVote(), OrganizationID: of, PostID: on, UserID: &v.voter, EmailHash: &v.emailHash, CreatedAt: store.Now(),
	}
}

func voteCreated(on publicid.Board, v *db.Vote) event.Payload {
	return &event.VoteCreatedPayload{
		BoardHead: event.BoardHead{BoardID: on},
		Vote:      event.Vote{ID: v.ID, PostID: v.PostID, UserID: v.UserID, CreatedAt: v.CreatedAt},
	}
}

// votable are those of locked posts that votes and comments belong on themselves.
func votable(found []store.LockedPost) map[publicid.Post]store.LockedPost {
	byID := make(map[publicid.Post]store.LockedPost, len(found))
	for _, p := range found {
		if !p.Merged {
			byID[p.ID] = p
		}
	}
	return byID
}

// RetractVote takes the caller's vote off a post, or off the one that it was
// merged into, which it returns. The vote that was there is nil where there was
// none: retracting twice is as good as once.
func (s *Service) RetractVote(ctx context.Context, on publicid.Post) (taken *db.Vote, from publicid.Post, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		from = p.ID
		taken, err = c.Vote.Query().Where(vote.PostID(p.ID), vote.UserID(c.Caller.User.ID)).Only(ctx)
		if db.IsNotFound(err) {
			taken = nil
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "load the vote")
		}
		if err := c.Vote.DeleteOne(taken).Exec(ctx); err != nil {
			return errors.Wrap(err, "delete the vote")
		}
		return count(ctx, c, p, -1, 0)
	})
	return taken, from, err
}

// Votes lists the votes on a post, newest first.
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
	query := s.store.Client().Vote.Query().Where(vote.PostID(on)).Order(db.Desc(vote.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(vote.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Vote]{}, errors.Wrap(err, "list votes")
	}
	return page.Cut(list, rows, limit, page.ByID(func(v *db.Vote) string { return v.ID.String() })), nil
}

// count moves the counters of a locked post. Retracting isn't activity.
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
