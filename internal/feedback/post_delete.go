package feedback

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db/changeloglink"
	"earshot/ent/db/post"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// DeletePost marks a post as deleted, so that no reader sees it, and removes it from the changelog
// entries that link it. Its rows stay. Deleting it again is problem.NotFound.
func (s *Service) DeletePost(ctx context.Context, id publicid.Post, q change.Request[*Post]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*Post, error) {
		// The strongest lock prevents new references to the post.
		found, err := lockIDs(ctx, c, sql.WithLockClause("FOR UPDATE"), post.Or(post.ID(id), post.MergedIntoID(id)))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, id) {
			return nil, problem.Missing("post")
		}
		if err := q.CheckIfMatchOf(c, func() (*Post, error) { return loadPost(ctx, c, id) }); err != nil {
			return nil, err
		}
		c.Audit("deletePost", id)
		if err := unlinkPost(ctx, c, id); err != nil {
			return nil, err
		}
		// Comments that wait for moderation no longer have a post.
		if _, err := c.Submission.Delete().Where(submission.PostID(id)).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "remove the submissions to the post")
		}
		at := postgres.Now()
		// Posts that were merged into this one become independent again.
		if err := c.Post.Update().Where(post.MergedIntoID(id)).ClearMergedIntoID().SetUpdatedAt(at).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "make the merged posts independent")
		}
		if err := c.Post.Update().Where(post.ID(id)).SetDeletedAt(at).SetUpdatedAt(at).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "delete the post")
		}
		return nil, nil
	})
	return err
}

// loadPost loads a post that is already locked.
func loadPost(ctx context.Context, c *change.Change, id publicid.Post) (*Post, error) {
	found, err := c.Post.Get(ctx, id)
	if err != nil {
		return nil, errors.Wrap(err, "load the post")
	}
	tags, err := tagsOf(ctx, c.PostTag, id)
	return &Post{Post: found, TagIDs: tags}, err
}

func unlinkPost(ctx context.Context, c *change.Change, id publicid.Post) error {
	if _, err := c.ChangelogLink.Delete().Where(changeloglink.PostID(id)).Exec(ctx); err != nil {
		return errors.Wrap(err, "take the post out of the changelog")
	}
	return nil
}
