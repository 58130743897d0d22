package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// maxMergeSources is the specification's limit.
const maxMergeSources = 20

// MergePosts moves the votes and comments of the sources to the target and makes each source a
// duplicate of it. It records post.status_changed for each source that was not a duplicate before.
// Sources that are already merged into the target stay as they are.
//
// A source that is the target, or belongs to another board, is problem.Validation. A source that
// does not exist is problem.NotFound. A source that is merged into another post, or a target that is
// merged itself, is problem.Conflict.
func (s *Service) MergePosts(
	ctx context.Context, id publicid.Post, sourceIDs []string, q change.Request[*Post],
) (*Post, error) {
	sources, err := checkSources(id, sourceIDs)
	if err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Post, error) {
		target, fresh, err := lockMerge(ctx, c, q, id, sources)
		if err != nil {
			return nil, err
		}
		if len(fresh) > 0 {
			c.Audit("mergePosts", id)
			if target, err = merge(ctx, c, target, fresh); err != nil {
				return nil, err
			}
		}
		tags, err := tagsOf(ctx, c.PostTag, id)
		return &Post{Post: target, TagIDs: tags}, err
	})
}

func checkSources(target publicid.Post, given []string) ([]publicid.Post, error) {
	var bad problem.Fields
	bad.Items("sourceIds", given, maxMergeSources)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	sources := make([]publicid.Post, len(given))
	for i, text := range given {
		if sources[i] = publicid.Read[publicid.Post](text); sources[i] == target && !target.IsZero() {
			bad.Add(problem.Item("sourceIds", i), "notTarget", "is the post to merge into")
		}
	}
	return sources, bad.Err()
}

// lockMerge loads and locks the target, the sources and the posts merged into the sources. It
// returns the sources that still need the merge.
func lockMerge(
	ctx context.Context, c *change.Change, q change.Request[*Post], id publicid.Post, sources []publicid.Post,
) (*db.Post, []*db.Post, error) {
	ids := append(slices.Clone(sources), id)
	if _, err := lockIDs(ctx, c, postgres.NoKeyUpdate, post.Or(post.IDIn(ids...), post.MergedIntoIDIn(sources...))); err != nil {
		return nil, nil, err
	}
	byID, err := lockPosts(ctx, c, post.IDIn(ids...))
	if err != nil {
		return nil, nil, err
	}
	target := byID[id]
	if target == nil {
		return nil, nil, problem.Missing("post")
	}
	if err := q.CheckIfMatchOf(c, func() (*Post, error) { return loadPost(ctx, c, id) }); err != nil {
		return nil, nil, err
	}
	if target.MergedIntoID != nil {
		return nil, nil, problem.TargetMerged.Problem().With("mergedIntoId", target.MergedIntoID)
	}
	fresh, err := mergeable(target, sources, byID)
	return target, fresh, err
}

func mergeable(target *db.Post, sources []publicid.Post, byID map[publicid.Post]*db.Post) ([]*db.Post, error) {
	var bad problem.Fields
	var fresh []*db.Post
	var elsewhere []string
	for i, id := range sources {
		p := byID[id]
		switch {
		case p == nil:
			return nil, problem.MissingIn("sourceIds", "post")
		case p.BoardID != target.BoardID:
			bad.Add(problem.Item("sourceIds", i), "sameBoard", "is a post of another board")
		case p.MergedIntoID == nil:
			if !slices.Contains(fresh, p) {
				fresh = append(fresh, p)
			}
		case *p.MergedIntoID != target.ID:
			elsewhere = append(elsewhere, id.String())
		}
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	if elsewhere != nil {
		return nil, problem.AlreadyMerged.Problem().With("sourceIds", elsewhere)
	}
	return fresh, nil
}

// merge merges locked posts and returns the updated target.
func merge(ctx context.Context, c *change.Change, target *db.Post, sources []*db.Post) (*db.Post, error) {
	ids := make([]publicid.Post, len(sources))
	comments := 0
	for i, p := range sources {
		ids[i] = p.ID
		comments += p.CommentCount
	}
	votes, err := movePosts(ctx, c.Tx, target.ID, ids)
	if err != nil {
		return nil, err
	}
	// Comments that wait for moderation move along.
	if err := c.Submission.Update().Where(submission.PostIDIn(ids...)).SetPostID(target.ID).Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "move the submissions of the merged posts")
	}
	at := postgres.Now()
	for _, p := range sources {
		next, err := c.Post.UpdateOne(p).SetStatus(post.StatusDuplicate).SetMergedIntoID(target.ID).
			SetVoteCount(0).SetCommentCount(0).SetUpdatedAt(at).SetLastActivityAt(at).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "merge the post")
		}
		if p.Status == next.Status {
			continue
		}
		err = c.Record(event.PostStatusChanged, &event.PostStatusChangedPayload{
			BoardHead: event.BoardHead{BoardID: p.BoardID}, Post: eventPost(next), PreviousStatus: string(p.Status),
		})
		if err != nil {
			return nil, err
		}
	}
	merged, err := c.Post.UpdateOne(target).AddVoteCount(votes).AddCommentCount(comments).
		SetLastActivityAt(at).Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "update the post that was merged into")
	}
	return merged, nil
}
