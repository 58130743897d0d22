package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
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
	query := s.store.Client().Comment.Query().Where(comment.PostID(on)).
		Order(store.ByThread).Limit(limit + 1)
	if q.Cursor != nil {
		query.Where(store.CommentsAfter(thread, last))
	}
	rows, err := query.Select(comment.FieldParentID).All(ctx)
	if err != nil {
		return page.Page[*db.Comment]{}, errors.Wrap(err, "list comments")
	}
	place := func(c *db.Comment) []string {
		if c.ParentID != nil {
			return []string{c.ParentID.String(), c.ID.String()}
		}
		return []string{c.ID.String(), c.ID.String()}
	}
	return page.LargeRows[publicid.Comment, *db.Comment]{
		List: list, Memory: q.Memory, Place: place, ID: func(c *db.Comment) publicid.Comment { return c.ID },
		Sizes: func(ids ...publicid.Comment) ([]*db.Comment, error) {
			return s.store.Client().Comment.Query().Where(comment.IDIn(ids...)).
				Order(store.Sized(comment.FieldBodyText, comment.FieldBodyJSON)).Select(comment.FieldID).All(ctx)
		},
		Load: func(ids ...publicid.Comment) ([]*db.Comment, error) {
			return s.store.Client().Comment.Query().Where(comment.IDIn(ids...)).All(ctx)
		},
		Size: func(c *db.Comment) int { return page.JSONSize(c.BodyText) + page.JSONSize(c.BodyJSON) },
	}.Filled(ctx, page.Cut(list, rows, limit, place))
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
