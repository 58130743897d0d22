package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/internal/problem"
	"earshot/internal/slug"
)

// withoutText has the columns of a post in a list of titles.
var withoutText = []string{
	post.FieldID, post.FieldTitle, post.FieldSlug, post.FieldStatus, post.FieldVoteCount, post.FieldCommentCount,
	post.FieldCreatedAt, post.FieldUpdatedAt,
}

const (
	// roadmapColumn is the number of posts in a column of the roadmap, enough to look through.
	roadmapColumn = 50
	// maxAddresses keeps a sitemap smaller than a megabyte. The format allows 50,000.
	maxAddresses = 5000
)

// PublicPost loads a post of a public board by its slug.
func (s *Service) PublicPost(ctx context.Context, on *db.Board, name string) (*Post, error) {
	if !on.Public || !slug.Valid(name) {
		return nil, problem.Missing("post")
	}
	found, err := s.store.Client().Post.Query().Where(post.BoardID(on.ID), post.Slug(name), post.DeletedAtIsNil()).
		Select(post.FieldID).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("post")
	}
	if err != nil {
		return nil, errors.Wrap(err, "find the post")
	}
	return s.Post(ctx, found.ID)
}

// RoadmapStatuses are the columns of a roadmap.
var RoadmapStatuses = []Status{post.StatusPlanned, post.StatusInProgress, post.StatusShipped}

// Roadmap returns the posts of a public board in each of RoadmapStatuses, newest first, without their
// texts. It leaves out posts that are hidden from the roadmap. If the board does not show its
// roadmap, it returns problem.NotFound.
func (s *Service) Roadmap(ctx context.Context, on *db.Board) ([][]*db.Post, error) {
	if !on.Public || !on.ShowRoadmap {
		return nil, problem.Missing("roadmap")
	}
	columns := make([][]*db.Post, len(RoadmapStatuses))
	for i, status := range RoadmapStatuses {
		var err error
		columns[i], err = s.store.Client().Post.Query().
			Where(post.BoardID(on.ID), post.StatusEQ(status), post.HideFromRoadmap(false), post.DeletedAtIsNil()).
			Order(db.Desc(post.FieldID)).Limit(roadmapColumn).Select(withoutText...).All(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "load the roadmap")
		}
	}
	return columns, nil
}

// PublicAddresses returns the newest posts of a public board with their slugs and update times.
func (s *Service) PublicAddresses(ctx context.Context, on *db.Board) ([]*db.Post, error) {
	if !on.Public {
		return nil, problem.Missing("board")
	}
	found, err := s.store.Client().Post.Query().Where(post.BoardID(on.ID), post.DeletedAtIsNil()).
		Order(db.Desc(post.FieldID)).Limit(maxAddresses).Select(post.FieldSlug, post.FieldUpdatedAt).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "list the posts' addresses")
	}
	return found, nil
}
