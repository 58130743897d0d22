package feedback

import (
	"context"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// PostableBoard is a board that takes a new post, and that can't be deleted until the transaction
// ends. Only mayPost makes one, so that every new post passes its rules.
type PostableBoard struct{ board *db.Board }

// Shown returns the board, as a page shows it.
func (b PostableBoard) Shown() *db.Board { return b.board }

// mayPost is the gate of new posts.
func mayPost(on *db.Board, visitor bool) (PostableBoard, error) {
	if visitor && !on.Public {
		return PostableBoard{}, problem.Missing("board")
	}
	return PostableBoard{on}, nil
}

// KeepForPost prevents the deletion of a board for the post of a visitor.
func (s *Service) KeepForPost(ctx context.Context, c *change.Change, id publicid.Board) (PostableBoard, error) {
	on, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(id)).ForShare(postgres.KeyShare))
	if err != nil {
		return PostableBoard{}, err
	}
	return mayPost(on, true)
}
