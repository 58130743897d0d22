package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/post"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file has the statements of posts, votes and comments for which Ent has no call: they lock, read
// or count for many callers of one organization at once. They read the columns of Ent's schema, so that
// a gate sees each column that is added to it.

// PostSlug is a slug on a board.
type PostSlug struct {
	Board publicid.Board
	Slug  string
}

// PostPlaces is the answer of KeepPostPlaces.
type PostPlaces struct {
	Boards   map[publicid.Board]*db.Board
	Contacts map[publicid.Contact]bool
	// Taken are the slugs that live posts have.
	Taken map[PostSlug]bool
}

// Postgres may keep the plan of a statement from the time when a table was small. All indexes look alike
// then, and it may choose one that leads to all rows of the organization or the board. Therefore only the
// right index can be used.
//
// IS NOT DISTINCT FROM and coalesce compare without an index, so rows are found by their ids. A slug is found as
// the first one in a range, because only one index has this order. The range ends at the slug, because entries of
// many deleted posts may follow. The boards are of the organization, and so are their posts.
var keepPostPlacesSQL = `
SELECT b.*, ARRAY(
  SELECT w.slug FROM unnest((SELECT $2::uuid[]), $3::text[]) w(board_id, slug), LATERAL (
    SELECT FROM posts WHERE board_id = w.board_id AND slug >= w.slug AND slug <= w.slug AND deleted_at IS NULL
    ORDER BY slug LIMIT 1
  ) p WHERE w.board_id = b.id
), ARRAY(
  SELECT c.id FROM unnest((SELECT $4::uuid[])) w(id), LATERAL (
    SELECT id FROM contacts WHERE id = w.id AND organization_id IS NOT DISTINCT FROM $1 LIMIT 1 FOR KEY SHARE%[1]s) c
) FROM unnest((SELECT $5::uuid[])) w(id), LATERAL (
  SELECT ` + strings.Join(board.Columns, ", ") + ` FROM boards
  WHERE id = w.id AND organization_id IS NOT DISTINCT FROM $1 LIMIT 1 FOR KEY SHARE%[1]s
) b`

// KeepPostPlaces finds the boards and the contacts of new posts, prevents their deletion until the
// transaction ends, and looks for posts that have the slugs. It skips rows that other transactions are
// about to delete if skipHeld is set. Without any board, it finds no contacts.
func KeepPostPlaces(
	ctx context.Context, tx *db.Tx, slugs []PostSlug, contacts []publicid.Contact, skipHeld bool,
) (*PostPlaces, error) {
	boards, names := make([]publicid.Board, len(slugs)), make([]string, len(slugs))
	for i, s := range slugs {
		boards[i], names[i] = s.Board, s.Slug
	}
	found := &PostPlaces{map[publicid.Board]*db.Board{}, map[publicid.Contact]bool{}, map[PostSlug]bool{}}
	var b db.Board
	var taken []string
	var kept []publicid.Contact
	err := postgres.QueryTx(ctx, tx, postgres.EachRow(append(boardFields.In(&b, board.Columns), &taken, &kept), func() {
		on := b
		found.Boards[b.ID] = &on
		for _, slug := range taken {
			found.Taken[PostSlug{b.ID, slug}] = true
		}
		for _, contact := range kept { // the same for each board
			found.Contacts[contact] = true
		}
	}), fmt.Sprintf(keepPostPlacesSQL, postgres.SkipLocked(skipHeld)), postgres.UUIDs(boards), names, postgres.UUIDSet(contacts), postgres.UUIDSet(boards))
	if err != nil {
		return nil, errors.Wrap(err, "keep the boards and contacts")
	}
	return found, nil
}

// lockedColumns are the columns of a post that a lock reads: all except the texts, which may be long.
var lockedColumns = slices.DeleteFunc(slices.Clone(post.Columns), func(column string) bool {
	return column == post.FieldBodyText || column == post.FieldBodyJSON
})

// The array is selected as in seeSQL, and the organization is compared as in keepPostPlacesSQL. The
// boards are as of the begin of the statement, which may wait for the posts (lockVisitorsPlace).
var lockPlacesSQL = `
WITH asked AS (
  SELECT unnest((SELECT $2::uuid[])) AS id
), wanted AS (
  SELECT id FROM asked UNION
  SELECT m.* FROM asked a, LATERAL (SELECT merged_into_id FROM posts WHERE id = a.id AND organization_id IS NOT DISTINCT FROM $1 LIMIT 1) m
  WHERE merged_into_id IS NOT NULL
)
SELECT p.*, b.* FROM (SELECT id FROM wanted ORDER BY id) w, LATERAL (
  SELECT ` + strings.Join(lockedColumns, ", ") + ` FROM posts
  WHERE id = w.id AND organization_id IS NOT DISTINCT FROM $1 AND coalesce(deleted_at, 'infinity') = 'infinity' LIMIT 1 FOR NO KEY UPDATE%s
) p, LATERAL (
  SELECT ` + strings.Join(board.Columns, ", ") + ` FROM boards WHERE id = p.board_id AND organization_id IS NOT DISTINCT FROM $1 LIMIT 1
) b`

// LockPlaces locks live posts and the posts that they were merged into, in the order of their ids.
// It skips posts that other transactions hold if skipHeld is set. The result is by id.
func LockPlaces(
	ctx context.Context, tx *db.Tx, ids []publicid.Post, skipHeld bool,
) (map[publicid.Post]Place, error) {
	found := make(map[publicid.Post]Place, len(ids))
	var p db.Post
	var b db.Board
	columns := append(postFields.In(&p, lockedColumns), boardFields.In(&b, board.Columns)...)
	err := postgres.QueryTx(ctx, tx, postgres.EachRow(columns, func() {
		on, of := p, b
		found[p.ID] = Place{&on, &of}
	}), fmt.Sprintf(lockPlacesSQL, postgres.SkipLocked(skipHeld)), postgres.UUIDSet(ids))
	if err != nil {
		return nil, errors.Wrap(err, "lock the posts")
	}
	return found, nil
}

var boardFields, postFields = postgres.FieldsOf[db.Board](), postgres.FieldsOf[db.Post]()

// PostCount is a change of a post's counters. At is the time of the activity, or nil for none.
type PostCount struct {
	Post            publicid.Post
	Votes, Comments int
	At              *time.Time
}

const countOnPostsSQL = `
UPDATE posts p SET vote_count = p.vote_count + m.votes, comment_count = p.comment_count + m.comments,
  last_activity_at = greatest(p.last_activity_at, m.at)
FROM unnest((SELECT $2::uuid[]), $3::int[], $4::int[], $5::timestamptz[]) m(id, votes, comments, at)
WHERE p.organization_id = $1 AND p.id = m.id`

// CountOnPosts changes the counters of locked posts. Each post stands in counts once.
func CountOnPosts(ctx context.Context, tx *db.Tx, counts []PostCount) error {
	n := len(counts)
	ids, votes, comments, at := make(postgres.UuidArray, n), make([]int32, n), make([]int32, n), make([]*time.Time, n)
	for i, c := range counts {
		ids[i], votes[i], comments[i], at[i] = postgres.UUID(c.Post), int32(c.Votes), int32(c.Comments), c.At
	}
	if _, err := postgres.ExecTx(postgres.WithCommit(ctx), tx, countOnPostsSQL, ids, votes, comments, at); err != nil {
		return errors.Wrap(err, "count on the posts")
	}
	return nil
}
