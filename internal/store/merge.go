package store

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// Of a voter who voted for several of the posts the target's vote stays, else the
// oldest; so whatever moves is one more for the target. A post has one vote of each
// voter, so the others have to go first.
const dropVotesSQL = `
DELETE FROM votes v USING (
  SELECT id, row_number() OVER (
    PARTITION BY coalesce(user_id::text, encode(email_hash, 'hex'), id::text)
    ORDER BY (post_id = $2) DESC, id) AS place
  FROM votes WHERE organization_id = $1 AND (post_id = $2 OR post_id = ANY ($3::uuid[]))
) AS ranked
WHERE v.organization_id = $1 AND v.id = ranked.id AND ranked.place > 1`

const moveVotesSQL = `UPDATE votes SET post_id = $2 WHERE organization_id = $1 AND post_id = ANY ($3::uuid[])`

const moveCommentsSQL = `UPDATE comments SET post_id = $2 WHERE organization_id = $1 AND post_id = ANY ($3::uuid[])`

// What was merged into a source earlier is merged into the target now: so nobody
// has to follow more than one step.
const moveMergedSQL = `UPDATE posts SET merged_into_id = $2 WHERE organization_id = $1 AND merged_into_id = ANY ($3::uuid[])`

// MovePosts gives a post the votes and comments of others of its organization, and
// the posts that were merged into them. It returns how many votes it won: a voter
// has one. The caller holds locks on all of the posts.
func MovePosts(ctx context.Context, tx *db.Tx, of publicid.Organization, to publicid.Post, from []publicid.Post) (votes int, err error) {
	ids := make([]string, len(from))
	for i, id := range from {
		ids[i] = id.UUID().String()
	}
	var moved int64
	for _, statement := range []string{dropVotesSQL, moveCommentsSQL, moveMergedSQL, moveVotesSQL} {
		done, err := tx.ExecContext(ctx, statement, of, to, ids)
		if err != nil {
			return 0, errors.Wrap(err, "merge posts")
		}
		if moved, err = done.RowsAffected(); err != nil {
			return 0, errors.Wrap(err, "merge posts")
		}
	}
	// The last statement moved the votes.
	return int(moved), nil
}

// PostAndTarget are a post and the one that it was merged into.
func PostAndTarget(id publicid.Post) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(").Ident(s.C(post.FieldID)).WriteString(" = ").Arg(id).WriteString(" OR ").
				Ident(s.C(post.FieldID)).WriteString(" = (SELECT merged_into_id FROM posts WHERE id = ").Arg(id).WriteString("))")
		}))
	}
}
