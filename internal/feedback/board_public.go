package feedback

import (
	"context"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// These methods read public boards for anonymous readers. A private board is problem.NotFound. For
// the posts and comments of a public board use Posts and Comments.

// PublicBoards lists the organization's public boards, oldest first.
func (s *Service) PublicBoards(ctx context.Context, q page.Query) (page.Page[*db.Board], error) {
	return s.boards(ctx, page.ListOf("publicBoards"), q, board.Public(true))
}

// HasPublicBoard reports whether the organization has a public board.
func (s *Service) HasPublicBoard(ctx context.Context) (bool, error) {
	return postgres.Exists(ctx, s.store.Client().Board.Query().Where(board.Public(true)))
}

// PublicBoard loads a public board by its slug.
func (s *Service) PublicBoard(ctx context.Context, name string) (*db.Board, error) {
	if !slug.Valid(name) {
		return nil, problem.Missing("board")
	}
	return onlyBoard(ctx, s.store.Client().Board.Query().Where(board.Slug(name), board.Public(true)))
}

// PublicBoardByID loads a public board.
func (s *Service) PublicBoardByID(ctx context.Context, id publicid.Board) (*db.Board, error) {
	return onlyBoard(ctx, s.store.Client().Board.Query().Where(board.ID(id), board.Public(true)))
}
