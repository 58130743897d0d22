package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/post"
	"earshot/ent/db/user"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
	"earshot/internal/store"
)

// These methods read public boards for anonymous readers. A private board is problem.NotFound. For
// the posts and comments of a public board use Posts and Comments.

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

// PublicBoards lists the organization's public boards, oldest first.
func (s *Service) PublicBoards(ctx context.Context, q page.Query) (page.Page[*db.Board], error) {
	return s.boards(ctx, page.ListOf("publicBoards"), q, board.Public(true))
}

// HasPublicBoard reports whether the organization has a public board.
func (s *Service) HasPublicBoard(ctx context.Context) (bool, error) {
	return store.Exists(ctx, s.store.Client().Board.Query().Where(board.Public(true)))
}

// PublicBoard loads a public board by its slug.
func (s *Service) PublicBoard(ctx context.Context, name string) (*db.Board, error) {
	if !slug.Valid(name) {
		return nil, problem.Missing("board")
	}
	return onlyBoard(ctx, s.store.Client().Board.Query().Where(board.Slug(name), board.Public(true)))
}

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

// PublicBoardByID loads a public board.
func (s *Service) PublicBoardByID(ctx context.Context, id publicid.Board) (*db.Board, error) {
	return onlyBoard(ctx, s.store.Client().Board.Query().Where(board.ID(id), board.Public(true)))
}

// Roadmap returns the posts of a public board in each of the statuses, newest first, without their
// texts. It leaves out posts that are hidden from the roadmap. If the board does not show its
// roadmap, it returns problem.NotFound.
func (s *Service) Roadmap(ctx context.Context, on *db.Board, statuses ...post.Status) ([][]*db.Post, error) {
	if !on.Public || !on.ShowRoadmap {
		return nil, problem.Missing("roadmap")
	}
	columns := make([][]*db.Post, len(statuses))
	for i, status := range statuses {
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

// Author is the public information about an author.
type Author struct {
	// Name is a member's name. It is empty for guests, because they are customers and stay
	// anonymous, and for removed members.
	Name  string
	Guest bool
}

// Authors returns the authors with these ids, as far as they exist.
func (s *Service) Authors(ctx context.Context, of []publicid.User) (map[publicid.User]Author, error) {
	authors := make(map[publicid.User]Author, len(of))
	if len(of) == 0 {
		return authors, nil
	}
	found, err := s.store.Client().User.Query().Where(user.IDIn(of...)).
		Select(user.FieldID, user.FieldName, user.FieldRole, user.FieldKind).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the authors")
	}
	for _, u := range found {
		one := Author{Guest: u.Kind == user.KindGuest}
		if u.Role != nil && !one.Guest {
			one.Name = u.Name
		}
		authors[u.ID] = one
	}
	return authors, nil
}
