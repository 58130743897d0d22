package api

import (
	"context"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

func (s *server) CreateComment(ctx context.Context, r gen.CreateCommentRequestObject) (gen.CreateCommentResponseObject, error) {
	on, err := feedback.PathID[publicid.Post]("postId", r.PostID)
	if err != nil {
		return nil, err
	}
	in := feedback.NewComment{Body: feedback.Body{JSON: r.Body.Body.JSON, Text: r.Body.Body.Text}}
	if v, err := r.Body.ParentID.Get(); err == nil {
		in.ParentID = &v
	}
	c, err := s.feedback.CreateComment(ctx, on, in)
	if err != nil {
		return nil, err
	}
	feedback.Touch(ctx, "commentId", c.ID)
	return gen.CreateComment201JSONResponse{Data: comment(c)}, nil
}

func comment(c *db.Comment) gen.Comment {
	out := gen.Comment{
		ID: c.ID.String(), PostID: c.PostID.String(), ParentID: idOrNull(c.ParentID),
		Body: nullable.NewNullNullable[gen.RichText](), AuthorUserID: idOrNull(c.AuthorUserID),
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, DeletedAt: orNull(c.DeletedAt),
	}
	if c.DeletedAt == nil {
		out.Body.Set(richText(c.BodyJSON, c.BodyText))
	}
	return out
}
