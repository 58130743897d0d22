package feedback

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/comment"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/ent/db/tag"
	"earshot/ent/db/vote"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// The specification's limits for a board.
const (
	maxBoardName        = 80
	maxBoardSlug        = 60
	maxBoardDescription = 500
	boardPage           = 50
)

// NewBoard has the values of a new board. A nil slug is derived from the name.
type NewBoard struct {
	Name        string
	Slug        *string
	Description string
	Public      bool
	// Moderated holds back posts and comments of end-users until a member approves them.
	Moderated bool
}

// CreateBoard makes a board. It returns problem.Conflict if the requested slug is taken.
func (s *Service) CreateBoard(ctx context.Context, in NewBoard, q change.Request[*db.Board]) (*db.Board, error) {
	in.Name = strings.TrimSpace(in.Name)
	var bad problem.Fields
	bad.Shown("name", in.Name, 1, maxBoardName)
	bad.Text("description", in.Description, 0, maxBoardDescription)
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxBoardSlug)
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Board, error) {
		id, at := publicid.NewBoard(), postgres.Now()
		insert := func(name string) (bool, error) {
			return postgres.Inserted(c.Board.Create().
				SetID(id).SetName(in.Name).SetDescription(in.Description).SetPublic(in.Public).SetModerated(in.Moderated).
				SetSlug(name).SetCreatedAt(at).SetUpdatedAt(at).
				OnConflict(sql.DoNothing()).Exec(ctx))
		}
		taken := func(name string) (bool, error) { return postgres.Exists(ctx, c.Board.Query().Where(board.Slug(name))) }
		if err := withSlug(in.Slug, slug.From(in.Name, "board", maxBoardSlug), maxBoardSlug, taken, insert); err != nil {
			return nil, err
		}
		c.Audit("createBoard", id)
		return c.Board.Get(ctx, id)
	})
}

// Boards lists the organization's boards, oldest first.
func (s *Service) Boards(ctx context.Context, q page.Query) (page.Page[*db.Board], error) {
	return s.boards(ctx, page.ListOf("boards"), q)
}

func (s *Service) boards(ctx context.Context, list string, q page.Query, where ...predicate.Board) (page.Page[*db.Board], error) {
	var bad problem.Fields
	limit := q.Size(&bad, boardPage, boardPage)
	last := page.After[publicid.Board](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Board]{}, err
	}
	query := s.store.Client().Board.Query().Where(where...).Order(db.Asc(board.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(board.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Board]{}, errors.Wrap(err, "list boards")
	}
	return page.Cut(list, rows, limit, page.ByID(func(b *db.Board) string { return b.ID.String() })), nil
}

// mustHaveBoard returns problem.NotFound unless the board belongs to the organization. In a
// transaction, use keepBoard, which also prevents the board's deletion until the end.
func mustHaveBoard(ctx context.Context, client *db.BoardClient, id publicid.Board) error {
	_, err := onlyBoard(ctx, client.Query().Where(board.ID(id)))
	return err
}

func keepBoard(ctx context.Context, c *change.Change, id publicid.Board) error {
	_, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForShare(postgres.KeyShare))
	return err
}

func onlyBoard(ctx context.Context, query *db.BoardQuery) (*db.Board, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("board")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the board")
	}
	return found, nil
}

// Board loads one board.
func (s *Service) Board(ctx context.Context, id publicid.Board) (*db.Board, error) {
	return onlyBoard(ctx, s.store.Client().Board.Query().Where(board.ID(id)))
}

// BoardPatch has the changes to a board. A nil field stays as it is.
type BoardPatch struct {
	Name, Slug, Description                       *string
	ShowChangelog, ShowRoadmap, Public, Moderated *bool
}

func (in *BoardPatch) check() error {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		bad.Shown("name", trimmed, 1, maxBoardName)
	}
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxBoardSlug)
	}
	if in.Description != nil {
		bad.Text("description", *in.Description, 0, maxBoardDescription)
	}
	return bad.Err()
}

// UpdateBoard changes the fields in the patch. It returns problem.Conflict if another board has the
// slug.
func (s *Service) UpdateBoard(
	ctx context.Context, id publicid.Board, in BoardPatch, q change.Request[*db.Board],
) (*db.Board, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Board, error) {
		old, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForUpdate(postgres.NoKeyUpdate))
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, old); err != nil {
			return nil, err
		}
		update := c.Board.UpdateOne(old)
		change.Differs(in.Name, old.Name, update.SetName)
		change.Differs(in.Slug, old.Slug, update.SetSlug)
		change.Differs(in.Description, old.Description, update.SetDescription)
		change.Differs(in.ShowChangelog, old.ShowChangelog, update.SetShowChangelog)
		change.Differs(in.ShowRoadmap, old.ShowRoadmap, update.SetShowRoadmap)
		change.Differs(in.Public, old.Public, update.SetPublic)
		change.Differs(in.Moderated, old.Moderated, update.SetModerated)
		if change.Unchanged(update.Mutation()) {
			return old, nil
		}
		c.Audit("updateBoard", id)
		changed, err := update.SetUpdatedAt(postgres.Now()).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return nil, slugTaken()
		}
		if err != nil {
			return nil, errors.Wrap(err, "update the board")
		}
		return changed, nil
	})
}

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
