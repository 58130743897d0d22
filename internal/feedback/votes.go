package feedback

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/vote"
	"earshot/internal/event"
	"earshot/internal/publicid"
)

// CastVote puts the caller's vote on a post and records vote.created. When it
// is there already nothing changes, and fresh is false.
func (s *Service) CastVote(ctx context.Context, on publicid.Post) (v *db.Vote, fresh bool, err error) {
	err = s.change(ctx, func(c *change) error {
		p, err := c.lockPost(ctx, on)
		if err != nil {
			return err
		}
		voter := c.caller.User.ID
		v = &db.Vote{ID: publicid.NewVote(), OrganizationID: p.OrganizationID, PostID: on, UserID: &voter, CreatedAt: now()}
		fresh, err = inserted(c.Vote.Create().
			SetID(v.ID).SetPostID(on).SetUserID(voter).SetCreatedAt(v.CreatedAt).
			OnConflict(sql.DoNothing()).Exec(ctx))
		if err != nil {
			return err
		}
		if !fresh {
			v, err = c.Vote.Query().Where(vote.PostID(on), vote.UserID(voter)).Only(ctx)
			return err
		}
		if err := c.count(ctx, p, 1, 0); err != nil {
			return err
		}
		return c.record(ctx, event.VoteCreated, &event.VoteCreatedPayload{
			BoardHead: event.BoardHead{BoardID: p.BoardID},
			Vote:      event.Vote{ID: v.ID, PostID: on, UserID: v.UserID, CreatedAt: v.CreatedAt},
		})
	})
	return v, fresh, err
}

// RetractVote takes the caller's vote off a post. It returns the vote that was
// there, or nil: retracting twice is as good as once.
func (s *Service) RetractVote(ctx context.Context, on publicid.Post) (*db.Vote, error) {
	var taken *db.Vote
	err := s.change(ctx, func(c *change) error {
		p, err := c.lockPost(ctx, on)
		if err != nil {
			return err
		}
		taken, err = c.Vote.Query().Where(vote.PostID(on), vote.UserID(c.caller.User.ID)).Only(ctx)
		if db.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "load the vote")
		}
		if err := c.Vote.DeleteOne(taken).Exec(ctx); err != nil {
			return errors.Wrap(err, "delete the vote")
		}
		return c.count(ctx, p, -1, 0)
	})
	return taken, err
}

// count moves the counters of a locked post. Retracting isn't activity.
func (c *change) count(ctx context.Context, p *db.Post, votes, comments int) error {
	update := c.Post.Update().Where(post.ID(p.ID)).AddVoteCount(votes).AddCommentCount(comments)
	if votes+comments > 0 {
		update.SetLastActivityAt(now())
	}
	if err := update.Exec(ctx); err != nil {
		return errors.Wrap(err, "count on the post")
	}
	return nil
}
