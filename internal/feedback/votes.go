package feedback

import (
	"context"

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

// CastVote puts the caller's vote on a post, or on the one that it was merged
// into, and records vote.created. When it is there already nothing changes, and
// fresh is false.
func (s *Service) CastVote(ctx context.Context, on publicid.Post) (v *db.Vote, fresh bool, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		voter := c.Caller.User.ID
		v = &db.Vote{ID: publicid.NewVote(), OrganizationID: p.OrganizationID, PostID: p.ID, UserID: &voter, CreatedAt: store.Now()}
		fresh, err = store.Inserted(c.Vote.Create().
			SetID(v.ID).SetPostID(p.ID).SetUserID(voter).SetEmailHash(s.emailHash(c.Caller.User.Email)).
			SetCreatedAt(v.CreatedAt).
			OnConflict(sql.DoNothing()).Exec(ctx))
		if err != nil {
			return err
		}
		if !fresh {
			v, err = c.Vote.Query().Where(vote.PostID(p.ID), vote.UserID(voter)).Only(ctx)
			return err
		}
		if err := count(ctx, c, p, 1, 0); err != nil {
			return err
		}
		return c.Record(ctx, event.VoteCreated, &event.VoteCreatedPayload{
			BoardHead: event.BoardHead{BoardID: p.BoardID},
			Vote:      event.Vote{ID: v.ID, PostID: p.ID, UserID: v.UserID, CreatedAt: v.CreatedAt},
		})
	})
	return v, fresh, err
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
