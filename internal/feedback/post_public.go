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

// PublicPost is a post as the visitors of its board see it, on the board and in the widget.
type PublicPost struct {
	*Post
	// MergedInto is the target of the post's merge, or nil. Votes and comments go there.
	MergedInto *Post
	// NoVote and NoComment are the problems that a vote or a comment of a visitor meets. Nil means that
	// the post takes it.
	NoVote, NoComment error
}

// PublicPost loads a post of a public board by its slug.
func (s *Service) PublicPost(ctx context.Context, on *db.Board, name string) (*PublicPost, error) {
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
	seen := &PublicPost{}
	if seen.Post, err = s.Post(ctx, found.ID); err != nil {
		return nil, err
	}
	at := Place{seen.Post.Post, on}
	if seen.MergedIntoID != nil {
		seen.MergedInto, err = s.Post(ctx, *seen.MergedIntoID)
		if err != nil && !problem.Is(err, problem.NotFound) { // the target may have been deleted just now
			return nil, err
		}
	}
	if seen.MergedInto != nil {
		at.Post = seen.MergedInto.Post
	}
	_, seen.NoVote = mayVote(at, voter{visitor: true})
	_, seen.NoComment = mayComment(at, true)
	return seen, nil
}

// NoPost returns the problem that a new post of a visitor meets on a board. Nil means that the board
// takes it.
func NoPost(on *db.Board) error {
	_, err := mayPost(on, true)
	return err
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
