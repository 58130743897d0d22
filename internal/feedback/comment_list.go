package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Comment loads one comment of a live post. A deleted one is a tombstone.
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

// Comments lists the comments on a post as threads: the oldest top-level comment
// first, each followed by its replies, oldest first. Tombstones are in the list.
func (s *Service) Comments(ctx context.Context, on publicid.Post, q page.Query) (page.Page[*db.Comment], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
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
		where = append(where, store.CommentsAfter(thread, last))
	}
	read := func(limit, most int, where ...predicate.Comment) ([]*store.ListedComment, error) {
		return store.CommentPages.Read(ctx, s.store, store.PageOf[predicate.Comment]{
			Where: where, Order: store.ByThread, Limit: limit, Most: most,
		})
	}
	rows, err := read(limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*db.Comment]{}, errors.Wrap(err, "list comments")
	}
	place := func(c *store.ListedComment) []string {
		if c.ParentID != nil {
			return []string{c.ParentID.String(), c.ID.String()}
		}
		return []string{c.ID.String(), c.ID.String()}
	}
	out, err := page.LargeRows[publicid.Comment, *store.ListedComment]{
		List: list, Memory: q.Memory, Place: place, ID: func(c *store.ListedComment) publicid.Comment { return c.ID },
		Load: func(ids ...publicid.Comment) ([]*store.ListedComment, error) {
			return read(len(ids), page.All, comment.IDIn(ids...))
		},
		Size: func(c *store.ListedComment) int { return page.JSONSize(c.BodyText) + page.JSONSize(c.BodyJSON) },
	}.Filled(ctx, page.Cut(list, rows, limit, place))
	return page.Each(out, func(c *store.ListedComment) *db.Comment { return &c.Comment }), err
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
