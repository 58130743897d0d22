package api

import (
	"context"
	"encoding/json"
	"net/http"

	"earshot/api/gen"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/publicid"
)

func (s *server) CreatePost(ctx context.Context, r gen.CreatePostRequestObject) (gen.CreatePostResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	in := feedback.NewPost{Title: r.Body.Title, By: person(valueOf(r.Body.ContactID), r.Body.ExternalUserID, r.Body.CreateContact)}
	if b := postBody(r.Body.Body); b != nil {
		in.Body = *b
	}
	if r.Body.TagIDs != nil {
		in.TagIDs = *r.Body.TagIDs
	}
	p, err := s.Feedback.CreatePost(ctx, on, in, request(ctx, http.StatusCreated, createdPost))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "postId", p.ID)
	return createdPost(p), nil
}

func createdPost(p *feedback.Post) gen.CreatePost201JSONResponse {
	return gen.CreatePost201JSONResponse{Data: post(p)}
}

func (s *server) GetPost(ctx context.Context, r gen.GetPostRequestObject) (gen.GetPostResponseObject, error) {
	id := publicid.Read[publicid.Post](r.PostID)
	p, err := s.Feedback.Post(ctx, id)
	if err != nil {
		return nil, err
	}
	return foundPost(p), nil
}

func foundPost(p *feedback.Post) gen.GetPost200JSONResponse {
	return gen.GetPost200JSONResponse{Data: post(p)}
}

func (s *server) UpdatePost(ctx context.Context, r gen.UpdatePostRequestObject) (gen.UpdatePostResponseObject, error) {
	id := publicid.Read[publicid.Post](r.PostID)
	in := feedback.PostPatch{
		Title: r.Body.Title, Slug: r.Body.Slug, Status: (*string)(r.Body.Status),
		Body: postBody(r.Body.Body), HideFromRoadmap: r.Body.HideFromRoadmap, TagIDs: r.Body.TagIDs,
		ContactID: r.Body.ContactID, By: person(nil, r.Body.ExternalUserID, r.Body.CreateContact),
	}
	p, err := s.Feedback.UpdatePost(ctx, id, in, conditional(ctx, http.StatusOK, foundPost, foundPost))
	if err != nil {
		return nil, err
	}
	return gen.UpdatePost200JSONResponse(foundPost(p)), nil
}

func (s *server) ListPosts(ctx context.Context, r gen.ListPostsRequestObject) (gen.ListPostsResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	p, err := s.Feedback.Posts(ctx, on, feedback.PostQuery{
		Query: largePage(ctx, r.Params.Cursor, r.Params.Limit), Q: r.Params.Q,
		Statuses: texts(r.Params.Status), TagIDs: r.Params.TagIDs, ContactID: r.Params.ContactID,
		Sync: page.Sync{UpdatedSince: r.Params.UpdatedSince, IncludeDeleted: r.Params.IncludeDeleted}, Sort: (*string)(r.Params.Sort),
		Currency: r.Params.Currency,
	})
	if err != nil {
		return nil, err
	}
	return gen.ListPosts200JSONResponse(postList(p)), nil
}

func (s *server) ListAllPosts(ctx context.Context, r gen.ListAllPostsRequestObject) (gen.ListAllPostsResponseObject, error) {
	p, err := s.Feedback.AllPosts(ctx, feedback.PostQuery{
		Query: largePage(ctx, r.Params.Cursor, r.Params.Limit), Statuses: texts(r.Params.Status), ContactID: r.Params.ContactID,
		Sync: page.Sync{UpdatedSince: r.Params.UpdatedSince, IncludeDeleted: r.Params.IncludeDeleted}, Sort: (*string)(r.Params.Sort),
	})
	if err != nil {
		return nil, err
	}
	return gen.ListAllPosts200JSONResponse(postList(p)), nil
}

func postList(p page.Page[*feedback.Post]) gen.PostList {
	return gen.PostList{
		Data: each(p.Items, post), NextCursor: orNull(p.NextCursor), SyncCursor: p.SyncCursor, Deleted: deletions(p.Deleted),
	}
}

func (s *server) DeletePost(ctx context.Context, r gen.DeletePostRequestObject) (gen.DeletePostResponseObject, error) {
	id := publicid.Read[publicid.Post](r.PostID)
	gone := func(*feedback.Post) gen.DeletePost200JSONResponse {
		return gen.DeletePost200JSONResponse{Data: deleted(id)}
	}
	if err := s.Feedback.DeletePost(ctx, id, conditional(ctx, http.StatusOK, gone, foundPost)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func (s *server) MergePosts(ctx context.Context, r gen.MergePostsRequestObject) (gen.MergePostsResponseObject, error) {
	id := publicid.Read[publicid.Post](r.PostID)
	p, err := s.Feedback.MergePosts(ctx, id, r.Body.SourceIDs, conditional(ctx, http.StatusOK, foundPost, foundPost))
	if err != nil {
		return nil, err
	}
	return gen.MergePosts200JSONResponse(foundPost(p)), nil
}

func postBody(in *gen.PostBodyInput) *feedback.Body {
	if in == nil {
		return nil
	}
	b := &feedback.Body{JSON: in.JSON}
	if in.Text != nil {
		b.Text = *in.Text
	}
	return b
}

func post(p *feedback.Post) gen.Post {
	out := gen.Post{
		ID: p.ID.String(), OrganizationID: p.OrganizationID.String(), BoardID: p.BoardID.String(),
		Title: p.Title, Slug: p.Slug, Status: gen.PostStatus(p.Status), Body: richText(p.BodyJSON, p.BodyText),
		ContactID: idOrNull(p.ContactID), AuthorUserID: idOrNull(p.AuthorUserID),
		HideFromRoadmap: p.HideFromRoadmap,
		TagIDs:          each(p.TagIDs, publicid.Tag.String),
		VoteCount:       p.VoteCount, CommentCount: p.CommentCount, MergedIntoID: idOrNull(p.MergedIntoID),
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, LastActivityAt: p.LastActivityAt,
	}
	if r := p.Revenue; r != nil {
		out.Revenue = &gen.PostRevenue{Currency: r.Currency, MRRCents: r.MRRCents}
	}
	return out
}

func richText(document json.RawMessage, text string) gen.RichText {
	if document == nil {
		document = json.RawMessage("null")
	}
	return gen.RichText{JSON: document, Text: text}
}
