package api

import (
	"context"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/publicid"
)

func (s *server) CreateComment(ctx context.Context, r gen.CreateCommentRequestObject) (gen.CreateCommentResponseObject, error) {
	on := publicid.Read[publicid.Post](r.PostID)
	c, err := s.Feedback.CreateComment(ctx, on, feedback.NewComment{
		Body: feedback.Body{JSON: r.Body.Body.JSON, Text: r.Body.Body.Text}, ParentID: valueOf(r.Body.ParentID),
		By: person(r.Body.ContactID, r.Body.ExternalUserID, r.Body.CreateContact),
	}, request(ctx, http.StatusCreated, createdComment))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "commentId", c.ID)
	return createdComment(c), nil
}

func createdComment(c *db.Comment) gen.CreateComment201JSONResponse {
	return gen.CreateComment201JSONResponse{Data: comment(c)}
}

func (s *server) ListComments(ctx context.Context, r gen.ListCommentsRequestObject) (gen.ListCommentsResponseObject, error) {
	on := publicid.Read[publicid.Post](r.PostID)
	p, err := s.Feedback.Comments(ctx, on, largePage(ctx, r.Params.Cursor, r.Params.Limit),
		page.Sync{UpdatedSince: r.Params.UpdatedSince, IncludeDeleted: r.Params.IncludeDeleted})
	if err != nil {
		return nil, err
	}
	return gen.ListComments200JSONResponse{
		Data: each(p.Items, comment), NextCursor: orNull(p.NextCursor), SyncCursor: p.SyncCursor, Deleted: deletions(p.Deleted),
	}, nil
}

func (s *server) GetComment(ctx context.Context, r gen.GetCommentRequestObject) (gen.GetCommentResponseObject, error) {
	c, err := s.Feedback.Comment(ctx, publicid.Read[publicid.Comment](r.CommentID))
	if err != nil {
		return nil, err
	}
	return foundComment(c), nil
}

func foundComment(c *db.Comment) gen.GetComment200JSONResponse {
	return gen.GetComment200JSONResponse{Data: comment(c)}
}

func (s *server) UpdateComment(ctx context.Context, r gen.UpdateCommentRequestObject) (gen.UpdateCommentResponseObject, error) {
	id := publicid.Read[publicid.Comment](r.CommentID)
	body := feedback.Body{JSON: r.Body.Body.JSON, Text: r.Body.Body.Text}
	c, err := s.Feedback.UpdateComment(ctx, id, body, conditional(ctx, http.StatusOK, foundComment, foundComment))
	if err != nil {
		return nil, err
	}
	return gen.UpdateComment200JSONResponse(foundComment(c)), nil
}

func (s *server) DeleteComment(ctx context.Context, r gen.DeleteCommentRequestObject) (gen.DeleteCommentResponseObject, error) {
	id := publicid.Read[publicid.Comment](r.CommentID)
	gone := func(*db.Comment) gen.DeleteComment200JSONResponse {
		return gen.DeleteComment200JSONResponse{Data: deleted(id)}
	}
	if err := s.Feedback.DeleteComment(ctx, id, conditional(ctx, http.StatusOK, gone, foundComment)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func comment(c *db.Comment) gen.Comment {
	out := gen.Comment{
		ID: c.ID.String(), PostID: c.PostID.String(), ParentID: idOrNull(c.ParentID),
		Body: nullable.NewNullNullable[gen.RichText](), AuthorUserID: idOrNull(c.AuthorUserID), ContactID: idOrNull[publicid.Contact](nil),
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, DeletedAt: orNull(c.DeletedAt),
	}
	if c.DeletedAt == nil {
		out.ContactID = idOrNull(c.ContactID)
		out.Body.Set(richText(c.BodyJSON, c.BodyText))
	}
	return out
}
