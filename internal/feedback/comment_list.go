package feedback

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Comment loads one comment of a live post. A deleted comment is returned as a tombstone.
func (s *Service) Comment(ctx context.Context, id publicid.Comment) (*db.Comment, error) {
	found, err := onlyComment(ctx, s.store.Client().Comment.Query().Where(comment.ID(id)))
	if err != nil {
		return nil, err
	}
	if err := s.mustHavePost(ctx, found.PostID); problem.Is(err, problem.NotFound) {
		return nil, problem.Missing("comment")
	} else if err != nil {
		return nil, err
	}
	return found, nil
}

// Comments lists the comments on a post as threads: the oldest top-level comment first, each
// followed by its replies, oldest first. The list includes tombstones.
//
// With a Sync it lists the comments in the order of their changes instead, with deleted comments in
// a list of their own.
func (s *Service) Comments(ctx context.Context, on publicid.Post, q page.Query, sync page.Sync) (page.Page[*db.Comment], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	if sync.Check(&bad, true); sync.Asked() {
		return s.changedComments(ctx, &bad, on, q, limit, sync)
	}
	list := page.ListOf("comments", on)
	thread, last := afterComment(&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Comment]{}, err
	}
	if err := s.mustHavePost(ctx, on); err != nil {
		return page.Page[*db.Comment]{}, err
	}
	where := []predicate.Comment{comment.PostID(on)}
	if q.Cursor != nil {
		where = append(where, commentsAfter(thread, last))
	}
	read := func(limit, most int, where ...predicate.Comment) ([]*listedComment, error) {
		return commentPages.Read(ctx, s.store, page.Selection[predicate.Comment]{
			Where: where, Order: byThread, Limit: limit, Most: most,
		})
	}
	rows, err := read(limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*db.Comment]{}, errors.Wrap(err, "list comments")
	}
	place := func(c *listedComment) []string {
		if c.ParentID != nil {
			return []string{c.ParentID.String(), c.ID.String()}
		}
		return []string{c.ID.String(), c.ID.String()}
	}
	out, err := page.Filled(ctx, s.largeComments(ctx, list, q.Memory, place), page.Cut(list, rows, limit, place))
	return page.Each(out, wholeComment), err
}

func wholeComment(c *listedComment) *db.Comment { return &c.Comment }

func (s *Service) largeComments(
	ctx context.Context, list string, memory *page.Reservation, place func(*listedComment) []string,
) page.LargeRows[publicid.Comment, *listedComment] {
	return page.LargeRows[publicid.Comment, *listedComment]{
		List: list, Memory: memory, Place: place, ID: func(c *listedComment) publicid.Comment { return c.ID },
		Load: func(ids ...publicid.Comment) ([]*listedComment, error) {
			return commentPages.Read(ctx, s.store, page.Selection[predicate.Comment]{
				Where: []predicate.Comment{comment.IDIn(ids...)}, Order: byThread, Limit: len(ids), Most: page.All,
			})
		},
		Size: func(c *listedComment) int { return page.JSONSize(c.BodyText) + page.JSONSize(c.BodyJSON) },
	}
}

// changedComments is Comments in the order of changes.
func (s *Service) changedComments(
	ctx context.Context, bad *problem.Fields, on publicid.Post, q page.Query, limit int, sync page.Sync,
) (page.Page[*db.Comment], error) {
	list := page.ListOf("changedComments", on, sync)
	at := q.SyncPlace(bad, list)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Comment]{}, err
	}
	if err := s.mustHavePost(ctx, on); err != nil {
		return page.Page[*db.Comment]{}, err
	}
	raw := on.UUID()
	found, err := page.Changed[publicid.Comment, *listedComment, predicate.Comment]{
		LargeRows: s.largeComments(ctx, list, q.Memory, nil),
		Store:     s.store, Deletions: page.DeletedComments, Of: &raw,
		In:      func(c *listedComment) int64 { return c.ChangedIn },
		Deleted: func(id uuid.UUID) string { return publicid.Of[publicid.Comment](id).String() },
		Rows: func(limit int, within predicate.Comment) ([]*listedComment, error) {
			return commentPages.Read(ctx, s.store, page.Selection[predicate.Comment]{
				Where: []predicate.Comment{
					comment.PostID(on), comment.DeletedAtIsNil(), comment.UpdatedAtGTE(sync.Since()), within,
				},
				Order: page.ByChange(comment.Table), Limit: limit, Most: page.FirstRead,
			})
		},
	}.Page(ctx, at, limit, sync)
	return page.Each(found, wholeComment), err
}

// afterComment reads a cursor of Comments: the thread and the comment in it.
func afterComment(bad *problem.Fields, list string, q page.Query) (thread, last publicid.Comment) {
	place := q.Place(bad, list, 2)
	if place == nil {
		return thread, last
	}
	if thread.UnmarshalText([]byte(place[0])) != nil || last.UnmarshalText([]byte(place[1])) != nil {
		page.BadCursor(bad)
	}
	return thread, last
}
