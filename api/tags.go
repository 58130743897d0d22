package api

import (
	"context"
	"net/http"
	"strings"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) ListTags(ctx context.Context, r gen.ListTagsRequestObject) (gen.ListTagsResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	p, err := s.Feedback.Tags(ctx, on, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListTags200JSONResponse{Data: each(p.Items, tag), NextCursor: orNull(p.NextCursor)}, nil
}

// foundTag is the answer of a GET, if tags had one.
func foundTag(t *db.Tag) gen.UpdateTag200JSONResponse {
	return gen.UpdateTag200JSONResponse{Data: tag(t)}
}

func (s *server) CreateTag(ctx context.Context, r gen.CreateTagRequestObject) (gen.CreateTagResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	in := feedback.TagInput{Name: &r.Body.Name, Color: r.Body.Color}
	t, err := s.Feedback.CreateTag(ctx, on, in, request(ctx, http.StatusCreated, createdTag))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "tagId", t.ID)
	return createdTag(t), nil
}

func createdTag(t *db.Tag) gen.CreateTag201JSONResponse {
	return gen.CreateTag201JSONResponse{Data: tag(t)}
}

func (s *server) UpdateTag(ctx context.Context, r gen.UpdateTagRequestObject) (gen.UpdateTagResponseObject, error) {
	on, id := publicid.Read[publicid.Board](r.BoardID), publicid.Read[publicid.Tag](r.TagID)
	in := feedback.TagInput{Name: r.Body.Name, Color: r.Body.Color}
	t, err := s.Feedback.UpdateTag(ctx, on, id, in, conditional(ctx, http.StatusOK, foundTag, foundTag))
	if err != nil {
		return nil, err
	}
	return foundTag(t), nil
}

func (s *server) DeleteTag(ctx context.Context, r gen.DeleteTagRequestObject) (gen.DeleteTagResponseObject, error) {
	on, id := publicid.Read[publicid.Board](r.BoardID), publicid.Read[publicid.Tag](r.TagID)
	gone := func(*db.Tag) gen.DeleteTag200JSONResponse { return gen.DeleteTag200JSONResponse{Data: deleted(id)} }
	if err := s.Feedback.DeleteTag(ctx, on, id, conditional(ctx, http.StatusOK, gone, foundTag)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func tag(t *db.Tag) gen.Tag {
	return gen.Tag{
		ID: t.ID.String(), BoardID: t.BoardID.String(), Name: t.Name,
		Color:     strings.ToLower(t.Color), // older rows may have upper case
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}
}
