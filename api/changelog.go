package api

import (
	"context"
	"net/http"

	"earshot/api/gen"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/publicid"
)

func (s *server) ListChangelog(ctx context.Context, r gen.ListChangelogRequestObject) (gen.ListChangelogResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	p, err := s.Feedback.Entries(ctx, on, largePage(ctx, r.Params.Cursor, r.Params.Limit),
		page.Sync{UpdatedSince: r.Params.UpdatedSince, IncludeDeleted: r.Params.IncludeDeleted})
	if err != nil {
		return nil, err
	}
	return gen.ListChangelog200JSONResponse{
		Data: each(p.Items, entry), NextCursor: orNull(p.NextCursor), SyncCursor: p.SyncCursor, Deleted: deletions(p.Deleted),
	}, nil
}

func (s *server) CreateChangelogEntry(ctx context.Context, r gen.CreateChangelogEntryRequestObject) (gen.CreateChangelogEntryResponseObject, error) {
	on := publicid.Read[publicid.Board](r.BoardID)
	in := feedback.NewEntry{
		Title: r.Body.Title, Slug: r.Body.Slug,
		Version: valueOf(r.Body.Version), PublishedAt: valueOf(r.Body.PublishedAt),
	}
	if b := postBody(r.Body.Body); b != nil {
		in.Body = *b
	}
	e, err := s.Feedback.CreateEntry(ctx, on, in, request(ctx, http.StatusCreated, createdEntry))
	if err != nil {
		return nil, err
	}
	change.LogIDs(ctx, "entryId", e.ID)
	return createdEntry(e), nil
}

func createdEntry(e *feedback.Entry) gen.CreateChangelogEntry201JSONResponse {
	return gen.CreateChangelogEntry201JSONResponse{Data: entry(e)}
}

func (s *server) GetChangelogEntry(ctx context.Context, r gen.GetChangelogEntryRequestObject) (gen.GetChangelogEntryResponseObject, error) {
	id := publicid.Read[publicid.ChangelogEntry](r.EntryID)
	e, err := s.Feedback.Entry(ctx, id)
	if err != nil {
		return nil, err
	}
	return foundEntry(e), nil
}

func foundEntry(e *feedback.Entry) gen.GetChangelogEntry200JSONResponse {
	return gen.GetChangelogEntry200JSONResponse{Data: entry(e)}
}

func (s *server) UpdateChangelogEntry(ctx context.Context, r gen.UpdateChangelogEntryRequestObject) (gen.UpdateChangelogEntryResponseObject, error) {
	id := publicid.Read[publicid.ChangelogEntry](r.EntryID)
	e, err := s.Feedback.UpdateEntry(ctx, id, feedback.EntryPatch{
		Title: r.Body.Title, Slug: r.Body.Slug, Body: postBody(r.Body.Body),
		Version: r.Body.Version, PublishedAt: r.Body.PublishedAt,
	}, conditional(ctx, http.StatusOK, foundEntry, foundEntry))
	if err != nil {
		return nil, err
	}
	return gen.UpdateChangelogEntry200JSONResponse(foundEntry(e)), nil
}

func (s *server) ReplaceLinkedPosts(ctx context.Context, r gen.ReplaceLinkedPostsRequestObject) (gen.ReplaceLinkedPostsResponseObject, error) {
	id := publicid.Read[publicid.ChangelogEntry](r.EntryID)
	e, err := s.Feedback.LinkPosts(ctx, id, r.Body.PostIDs, conditional(ctx, http.StatusOK, foundEntry, foundEntry))
	if err != nil {
		return nil, err
	}
	return gen.ReplaceLinkedPosts200JSONResponse(foundEntry(e)), nil
}

func (s *server) DeleteChangelogEntry(ctx context.Context, r gen.DeleteChangelogEntryRequestObject) (gen.DeleteChangelogEntryResponseObject, error) {
	id := publicid.Read[publicid.ChangelogEntry](r.EntryID)
	gone := func(*feedback.Entry) gen.DeleteChangelogEntry200JSONResponse {
		return gen.DeleteChangelogEntry200JSONResponse{Data: deleted(id)}
	}
	if err := s.Feedback.DeleteEntry(ctx, id, conditional(ctx, http.StatusOK, gone, foundEntry)); err != nil {
		return nil, err
	}
	return gone(nil), nil
}

func entry(e *feedback.Entry) gen.ChangelogEntry {
	return gen.ChangelogEntry{
		ID: e.ID.String(), OrganizationID: e.OrganizationID.String(), BoardID: e.BoardID.String(),
		Title: e.Title, Slug: e.Slug, Version: orNull(e.Version), Body: richText(e.BodyJSON, e.BodyText),
		PublishedAt: orNull(e.PublishedAt), State: gen.ChangelogEntryState(e.State),
		PostIDs:   each(e.PostIDs, publicid.Post.String),
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}
