package feedback

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/comment"
	"earshot/ent/db/post"
	"earshot/ent/db/tag"
	"earshot/ent/db/vote"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// BoardPatch is what to change of a board; a nil member stays as it is.
type BoardPatch struct {
	Name, Slug, Description    *string
	ShowChangelog, ShowRoadmap *bool
}

func (in *BoardPatch) check() error {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		text(&bad, "name", trimmed, 1, maxBoardName)
	}
	if in.Slug != nil {
		slugText(&bad, *in.Slug, maxBoardSlug)
	}
	if in.Description != nil {
		text(&bad, "description", *in.Description, 0, maxBoardDescription)
	}
	return bad.Err()
}

// UpdateBoard changes what the patch holds and nothing else. A slug that another
// board has is problem.Conflict.
func (s *Service) UpdateBoard(ctx context.Context, id publicid.Board, in BoardPatch) (*db.Board, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var changed *db.Board
	err := s.change(ctx, func(c *change) error {
		old, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForUpdate(noKeyUpdate))
		if err != nil {
			return err
		}
		update := c.Board.UpdateOne(old)
		differs(in.Name, old.Name, update.SetName)
		differs(in.Slug, old.Slug, update.SetSlug)
		differs(in.Description, old.Description, update.SetDescription)
		differs(in.ShowChangelog, old.ShowChangelog, update.SetShowChangelog)
		differs(in.ShowRoadmap, old.ShowRoadmap, update.SetShowRoadmap)
		if changed = old; unchanged(update.Mutation()) {
			return nil
		}
		changed, err = update.SetUpdatedAt(now()).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return slugTaken()
		}
		if err != nil {
			return errors.Wrap(err, "update the board")
		}
		return nil
	})
	return changed, err
}

// differs calls set with the member of a patch where it is there and another than
// before.
func differs[T comparable, U any](in *T, old T, set func(T) U) {
	if in != nil && *in != old {
		set(*in)
	}
}

// orEmpty puts a value that may be null into an update. Ent takes one or the
// other, not both.
func orEmpty[T, U any](value *T, set func(T) U, empty func() U) {
	if value == nil {
		empty()
	} else {
		set(*value)
	}
}

// DeleteBoard removes an empty board whose name the caller repeats: another name
// is problem.Validation, posts, entries or tags left are problem.Conflict with
// their numbers. Posts that were deleted before go for good.
func (s *Service) DeleteBoard(ctx context.Context, id publicid.Board, confirmName string) error {
	var bad problem.Fields
	text(&bad, "confirmName", confirmName, 1, maxBoardName)
	if err := bad.Err(); err != nil {
		return err
	}
	return s.change(ctx, func(c *change) error {
		// Whoever puts something on the board keeps it, so what is counted below
		// is all there will be.
		found, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForUpdate())
		if err != nil {
			return err
		}
		if confirmName != found.Name {
			return problem.Invalid("confirmName", "match", "is not the board's name")
		}
		if err := c.mustBeEmpty(ctx, id); err != nil {
			return err
		}
		if err := c.purgePosts(ctx, id); err != nil {
			return err
		}
		if err := c.Board.DeleteOne(found).Exec(ctx); err != nil {
			return errors.Wrap(err, "delete the board")
		}
		return nil
	})
}

func (c *change) mustBeEmpty(ctx context.Context, id publicid.Board) error {
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
	return problem.New(problem.Conflict, "The board isn't empty.").With("reason", "board_not_empty").
		With("posts", posts).With("changelogEntries", entries).With("tags", tags)
}

// purgePosts removes the posts of a board that are deleted already, with what
// hangs on them.
func (c *change) purgePosts(ctx context.Context, id publicid.Board) error {
	onBoard := post.BoardID(id)
	if _, err := c.Vote.Delete().Where(vote.HasPostWith(onBoard)).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the votes")
	}
	// One statement: replies and what they answer refer to each other.
	if _, err := c.Comment.Delete().Where(comment.HasPostWith(onBoard)).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the comments")
	}
	if _, err := c.Post.Delete().Where(onBoard).Exec(ctx); err != nil {
		return errors.Wrap(err, "delete the posts")
	}
	return nil
}
