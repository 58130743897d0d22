package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) ListBoards(ctx context.Context, r gen.ListBoardsRequestObject) (gen.ListBoardsResponseObject, error) {
	p, err := s.Feedback.Boards(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListBoards200JSONResponse{Data: each(p.Items, board), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) CreateBoard(ctx context.Context, r gen.CreateBoardRequestObject) (gen.CreateBoardResponseObject, error) {
	in := feedback.NewBoard{Name: r.Body.Name, Slug: r.Body.Slug}
	if r.Body.Description != nil {
		in.Description = *r.Body.Description
	}
	if r.Body.Public != nil {
		in.Public = *r.Body.Public
	}
	if r.Body.Moderated != nil {
		in.Moderated = *r.Body.Moderated
	}
	b, err := s.Feedback.CreateBoard(ctx, in, request(ctx, http.StatusOK, createdBoard))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "boardId", b.ID)
	return createdBoard(b), nil
}

func createdBoard(b *db.Board) gen.CreateBoard200JSONResponse {
	return gen.CreateBoard200JSONResponse{Data: board(b)}
}

func (s *server) GetBoard(ctx context.Context, r gen.GetBoardRequestObject) (gen.GetBoardResponseObject, error) {
	id := publicid.Read[publicid.Board](r.BoardID)
	b, err := s.Feedback.Board(ctx, id)
	if err != nil {
		return nil, err
	}
	return foundBoard(b), nil
}

func foundBoard(b *db.Board) gen.GetBoard200JSONResponse {
	return gen.GetBoard200JSONResponse{Data: board(b)}
}

func (s *server) UpdateBoard(ctx context.Context, r gen.UpdateBoardRequestObject) (gen.UpdateBoardResponseObject, error) {
	id := publicid.Read[publicid.Board](r.BoardID)
	b, err := s.Feedback.UpdateBoard(ctx, id, feedback.BoardPatch{
		Name: r.Body.Name, Slug: r.Body.Slug, Description: r.Body.Description,
		ShowChangelog: r.Body.ShowChangelog, ShowRoadmap: r.Body.ShowRoadmap, Public: r.Body.Public, Moderated: r.Body.Moderated,
	}, conditional(ctx, http.StatusOK, foundBoard, foundBoard))
	if err != nil {
		return nil, err
	}
	return gen.UpdateBoard200JSONResponse(foundBoard(b)), nil
}

func (s *server) DeleteBoard(ctx context.Context, r gen.DeleteBoardRequestObject) (gen.DeleteBoardResponseObject, error) {
	id := publicid.Read[publicid.Board](r.BoardID)
	gone := func(*db.Board) gen.DeleteBoard200JSONResponse {
		return gen.DeleteBoard200JSONResponse{Data: deleted(id)}
	}
	if err := s.Feedback.DeleteBoard(ctx, id, r.Body.ConfirmName, conditional(ctx, http.StatusOK, gone, foundBoard)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func board(b *db.Board) gen.Board {
	return gen.Board{
		ID: b.ID.String(), OrganizationID: b.OrganizationID.String(), Name: b.Name, Slug: b.Slug,
		Description: b.Description, ShowChangelog: b.ShowChangelog, ShowRoadmap: b.ShowRoadmap,
		Public: b.Public, Moderated: b.Moderated, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt,
	}
}
