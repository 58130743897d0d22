package feedback

import (
	"context"
	"maps"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Post is a post with its tags, oldest tag first.
type Post struct {
	*db.Post
	TagIDs []publicid.Tag
	// Revenue is set in a list by revenue only.
	Revenue *Revenue
}

// Post loads one post.
func (s *Service) Post(ctx context.Context, id publicid.Post) (*Post, error) {
	found, err := PostPages.One(ctx, s.store, postgres.UUID(id))
	if err != nil {
		return nil, errors.Wrap(err, "load the post")
	}
	if found == nil || found.DeletedAt != nil {
		return nil, problem.Missing("post")
	}
	return wholePost(found), nil
}

func wholePost(p *listedPost) *Post { return &Post{Post: &p.Post, TagIDs: p.TagIDs} }

func (s *Service) mustHavePost(ctx context.Context, id publicid.Post) error {
	ok, err := postgres.Exists(ctx, s.store.Client().Post.Query().Where(post.ID(id), post.DeletedAtIsNil()))
	if err != nil {
		return errors.Wrap(err, "look up the post")
	}
	if !ok {
		return problem.Missing("post")
	}
	return nil
}

func tagsOf(ctx context.Context, client *db.PostTagClient, id publicid.Post) ([]publicid.Tag, error) {
	rows, err := client.Query().Where(posttag.PostID(id)).Order(db.Asc(posttag.FieldTagID)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the post's tags")
	}
	ids := make([]publicid.Tag, len(rows))
	for i, r := range rows {
		ids[i] = r.TagID
	}
	return ids, nil
}

// lockPost loads and locks a live post until the transaction ends.
func lockPost(ctx context.Context, c *change.Change, id publicid.Post) (*db.Post, error) {
	p, err := c.Post.Query().Where(post.ID(id), post.DeletedAtIsNil()).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("post")
	}
	if err != nil {
		return nil, errors.Wrap(err, "lock the post")
	}
	return p, nil
}

// Place is a locked post, without its text, and its board. Only the gates mayVote and mayComment admit
// votes and comments.
type Place struct {
	*db.Post
	board *db.Board
}

// lockedPlace is a Place, or the reason why there is none.
type lockedPlace struct {
	Place
	err error
}

// lockPlaces locks posts for votes and comments. For a merged post it locks and returns the target
// of the merge, as long as the target exists. The result has the order of ids. A missing post is
// problem.NotFound, or change.ErrHeld unless the change waits: another transaction may hold the post.
func lockPlaces(ctx context.Context, c *change.Change, ids []publicid.Post) ([]lockedPlace, error) {
	found, err := LockPlaces(ctx, c.Tx, ids, !c.Waits)
	if err != nil {
		return nil, err
	}
	all := make([]lockedPlace, len(ids))
	for i, id := range ids {
		p, known := found[id]
		switch {
		case known && p.MergedIntoID == nil:
			all[i].Place = p
		case known && found[*p.MergedIntoID].Post != nil:
			all[i].Place = found[*p.MergedIntoID]
		case !c.Waits:
			all[i].err = change.ErrHeld
		case !known:
			all[i].err = problem.Missing("post")
		default:
			there, err := postgres.Exists(ctx, c.Post.Query().Where(post.ID(*p.MergedIntoID), post.DeletedAtIsNil()))
			if err != nil {
				return nil, errors.Wrap(err, "look up the post that was merged into")
			}
			if all[i].Place = p; there {
				all[i].err = postgres.ErrAgain // the merge was made while this transaction waited for the lock
			}
		}
	}
	return all, nil
}

// lockPlace is lockPlaces for one post.
func lockPlace(ctx context.Context, c *change.Change, id publicid.Post) (Place, error) {
	found, err := lockPlaces(ctx, c, []publicid.Post{id})
	if err != nil {
		return Place{}, err
	}
	return found[0].Place, found[0].err
}

// lockVisitorsPlace is lockPlace for a visitor. It reads the board again after the lock, because a
// board that became private or moderated in the meantime must count.
func lockVisitorsPlace(ctx context.Context, c *change.Change, id publicid.Post) (Place, error) {
	at, err := lockPlace(ctx, c, id)
	if err != nil {
		return Place{}, err
	}
	at.board, err = onlyBoard(ctx, c.Board.Query().Where(board.ID(at.BoardID)))
	if problem.Is(err, problem.NotFound) {
		err = problem.Missing("post")
	}
	if err != nil {
		return Place{}, err
	}
	return at, at.shownTo(true)
}

// shownTo returns problem.NotFound if the post is hidden from a visitor: visitors see only public
// boards.
func (at Place) shownTo(visitor bool) error {
	if visitor && !at.board.Public {
		return problem.Missing("post")
	}
	return nil
}

// tally has the changes of the counters of locked posts.
type tally map[publicid.Post]PostCount

// add adds to the counters of a post. The last time is the one that counts.
func (t tally) add(n PostCount) {
	before := t[n.Post]
	n.Votes, n.Comments = n.Votes+before.Votes, n.Comments+before.Comments
	t[n.Post] = n
}

func (t tally) write(ctx context.Context, c *change.Change) error {
	return CountOnPosts(ctx, c.Tx, slices.Collect(maps.Values(t)))
}

// lockPosts loads and locks live posts until the transaction ends. It locks them in the order of
// their ids, as all transactions do.
func lockPosts(ctx context.Context, c *change.Change, which predicate.Post) (map[publicid.Post]*db.Post, error) {
	rows, err := c.Post.Query().Where(which, post.DeletedAtIsNil()).Order(db.Asc(post.FieldID)).ForUpdate(postgres.NoKeyUpdate).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "lock the posts")
	}
	byID := make(map[publicid.Post]*db.Post, len(rows))
	for _, p := range rows {
		byID[p.ID] = p
	}
	return byID, nil
}

// lockIDs locks live posts in the order of their ids. It does not load them, because there may be
// many.
func lockIDs(ctx context.Context, c *change.Change, lock sql.LockOption, which predicate.Post) ([]publicid.Post, error) {
	rows, err := c.Post.Query().Where(which, post.DeletedAtIsNil()).Order(db.Asc(post.FieldID)).
		ForUpdate(lock).Select(post.FieldID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "lock the posts")
	}
	ids := make([]publicid.Post, len(rows))
	for i, p := range rows {
		ids[i] = p.ID
	}
	return ids, nil
}

func eventPost(p *db.Post) event.Post {
	return event.Post{ID: p.ID, Title: p.Title, Slug: p.Slug, Status: string(p.Status), CreatedAt: p.CreatedAt}
}
