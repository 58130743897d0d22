package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/comment"
	"earshot/ent/db/post"
	"earshot/ent/db/tag"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// DeleteBoard removes an empty board. The caller repeats the board's name to confirm. Another name
// is problem.Validation. Remaining posts, entries or tags are problem.Conflict with their numbers.
// Posts that were deleted before are now removed from the database.
func (s *Service) DeleteBoard(ctx context.Context, id publicid.Board, confirmName string, q change.Request[*db.Board]) error {
	var bad problem.Fields
	bad.Text("confirmName", confirmName, 1, maxBoardName)
	if err := bad.Err(); err != nil {
		return err
	}
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Board, error) {
		// New posts, entries and tags lock the board, so the counts below are final.
		found, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForUpdate())
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, found); err != nil {
			return nil, err
		}
		if confirmName != found.Name {
			return nil, problem.Invalid("confirmName", "match", "is not the board's name")
		}
		if err := mustBeEmpty(ctx, c, id); err != nil {
			return nil, err
		}
		if err := purgePosts(ctx, c, id); err != nil {
			return nil, err
		}
		c.Audit("deleteBoard", id)
		if err := c.Board.DeleteOne(found).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "delete the board")
		}
		return found, nil
	})
	return err
}

func mustBeEmpty(ctx context.Context, c *change.Change, id publicid.Board) error {
	posts, err := c.Post.Query().Where(post.BoardID(id), post.DeletedAtIsNil()).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count posts")
	}
	entries, err := c.ChangelogEntry.Query().Where(changelogentry.BoardID(id)).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count changelog entries")
	}
	tags, err := c.Tag.Query().Where(tag.BoardID(id)).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count tags")
	}
	if posts+entries+tags == 0 {
		return nil
	}
	return problem.BoardNotEmpty.Problem().
		With("posts", posts).With("changelogEntries", entries).With("tags", tags)
}

// purgePosts removes a board's deleted posts from the database, with their votes and comments.
func purgePosts(ctx context.Context, c *change.Change, id publicid.Board) error {
	onBoard := post.BoardID(id)
	if _, err := c.Vote.Delete().Where(vote.HasPostWith(onBoard)).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the votes")
	}
	// Use one statement, because replies and their parents refer to each other.
	if _, err := c.Comment.Delete().Where(comment.HasPostWith(onBoard)).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the comments")
	}
	if _, err := c.Post.Delete().Where(onBoard).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the posts")
	}
	return nil
}
