package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Several callers share one read. No caller gets rows that were read before the request.

// pageKey names a page of a list. Requests that arrive while a page is read share its next read, because
// most readers look at the first page of a board.
type pageKey struct {
	organization publicid.Organization
	board        publicid.Board
	// list is of the filters and the sort (page.ListOf).
	list, cursor string
	limit        int
}

// placedPage is a page of posts that several callers may have, and where a post of it stands.
type placedPage struct {
	page.Page[*store.ListedPost]
	place postPlace
}

// sharedPage is postPlaces for all who ask for the same page at once.
func (s *Service) sharedPage(ctx context.Context, on publicid.Board, in checkedPostQuery) (page.Page[*store.ListedPost], postPlace, error) {
	of := pageKey{change.CallerOf(ctx).Organization.ID, on, in.list, in.cursor, in.limit}
	found, err := s.pages.Do(ctx, of, in)
	return found.Page, found.place, err
}

// readPage reads a page for all who asked for it.
func (s *Service) readPage(ctx context.Context, of pageKey, asked []checkedPostQuery) ([]placedPage, error) {
	found, place, err := s.postPlaces(store.WithOrganization(ctx, of.organization), of.board, asked[0])
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]placedPage{{found, place}}, len(asked)), nil
}

// loadPosts loads posts of an organization for all who ask at once, nil where there is none.
func (s *Service) loadPosts(ctx context.Context, of publicid.Organization, ids []publicid.Post) ([]*store.ListedPost, error) {
	raw := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		raw[i] = id.UUID()
	}
	found, err := store.PostPages.Whole(ctx, s.store, of, raw)
	if err != nil {
		return nil, errors.Wrap(err, "load posts")
	}
	out := make([]*store.ListedPost, len(ids))
	for _, p := range found {
		for i, id := range ids {
			if p.ID == id {
				out[i] = p
			}
		}
	}
	return out, nil
}

// wholePost is a post as one caller of several gets it.
func wholePost(p *store.ListedPost) *Post {
	own := p.Post
	return &Post{Post: &own, TagIDs: p.TagIDs}
}
