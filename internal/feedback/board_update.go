package feedback

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

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
