package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) ListTags(ctx context.Context, r gen.ListTagsRequestObject) (gen.ListTagsResponseObject, error) {
	on, err := feedback.PathID[publicid.Board]("boardId", r.BoardID)
	if err != nil {
		return nil, err
	}
	p, err := s.feedback.Tags(ctx, on, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListTags200JSONResponse{Data: each(p.Items, tag), NextCursor: orNull(p.NextCursor)}, nil
}

func (s *server) CreateTag(ctx context.Context, r gen.CreateTagRequestObject) (gen.CreateTagResponseObject, error) {
	on, err := feedback.PathID[publicid.Board]("boardId", r.BoardID)
	if err != nil {
		return nil, err
	}
	t, err := s.feedback.CreateTag(ctx, on, feedback.TagInput{Name: &r.Body.Name, Color: r.Body.Color})
	if err != nil {
		return nil, err
	}
	feedback.Touch(ctx, "tagId", t.ID)
	return gen.CreateTag201JSONResponse{Data: tag(t)}, nil
}

func (s *server) UpdateTag(ctx context.Context, r gen.UpdateTagRequestObject) (gen.UpdateTagResponseObject, error) {
	on, id, err := tagPath(r.BoardID, r.TagID)
	if err != nil {
		return nil, err
	}
	t, err := s.feedback.UpdateTag(ctx, on, id, feedback.TagInput{Name: r.Body.Name, Color: r.Body.Color})
	if err != nil {
		return nil, err
	}
	return gen.UpdateTag200JSONResponse{Data: tag(t)}, nil
}

func (s *server) DeleteTag(ctx context.Context, r gen.DeleteTagRequestObject) (gen.DeleteTagResponseObject, error) {
	on, id, err := tagPath(r.BoardID, r.TagID)
	if err != nil {
		return nil, err
	}
	if err := s.feedback.DeleteTag(ctx, on, id); err != nil {
		return nil, err
	}
	return gen.DeleteTag200JSONResponse{Data: deleted(id)}, nil
}

func tagPath(board, tag string) (on publicid.Board, id publicid.Tag, err error) {
	if on, err = feedback.PathID[publicid.Board]("boardId", board); err != nil {
		return on, id, err
	}
	id, err = feedback.PathID[publicid.Tag]("tagId", tag)
	return on, id, err
}

func tag(t *db.Tag) gen.Tag {
	return gen.Tag{
		ID: t.ID.String(), BoardID: t.BoardID.String(), Name: t.Name, Color: t.Color,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}
}
