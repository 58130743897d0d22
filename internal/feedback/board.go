package feedback

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/predicate"
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
