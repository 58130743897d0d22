package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// If a person voted for several of the posts, one vote stays: the vote on the target, or else the
// oldest one. Every vote that moves is therefore one more for the target. The other votes have to
// go first, because a post has at most one vote of each person.
//
// A person is identified by a member's id, by a contact's id, and by the hash of the address.
// Members who share an address are different persons. A vote without a member belongs to at most
// one of them. If it comes before their votes, only the first of these members loses a vote to it.
//
// A vote has no hash if another vote on its post has the same one. It then counts by the hash of
// its contact. Among a person's votes, one with the hash stays, so that later votes can be compared
// with it.
//
// Known spellings of one mailbox count as one address (contacts/mailbox_sql.go).
const dropVotesSQL = `
WITH placed AS (
  SELECT v.id, v.post_id, v.user_id, v.contact_id, coalesce(s.mailbox_hash, v.email_hash, c.email_hash) AS email_hash,
    row_number() OVER (ORDER BY (v.post_id = $2) DESC, v.email_hash IS NULL, v.id) AS place
  FROM votes v LEFT JOIN contacts c ON c.organization_id = $1 AND c.id = v.contact_id
    LEFT JOIN address_spellings s ON s.organization_id = $1 AND s.email_hash = coalesce(v.email_hash, c.email_hash)
  WHERE v.organization_id = $1 AND (v.post_id = $2 OR v.post_id = ANY ($3::uuid[]))
), first AS (
  SELECT id, post_id, user_id, email_hash, place,
    CASE WHEN user_id IS NOT NULL THEN min(place) OVER (PARTITION BY user_id) END AS of_user,
    CASE WHEN contact_id IS NOT NULL THEN min(place) OVER (PARTITION BY contact_id) END AS of_contact,
    min(place) FILTER (WHERE user_id IS NULL) OVER (PARTITION BY email_hash) AS of_visitors,
    min(place) FILTER (WHERE user_id IS NOT NULL) OVER (PARTITION BY email_hash) AS of_members
  FROM placed
)
DELETE FROM votes v USING first f
WHERE v.organization_id = $1 AND v.id = f.id AND f.post_id <> $2 AND (
  f.place > least(f.of_user, f.of_contact) OR f.email_hash IS NOT NULL AND CASE
    WHEN f.user_id IS NULL THEN f.place > least(f.of_visitors, f.of_members)
    ELSE f.of_user = f.of_members AND f.of_visitors < f.of_members
  END)`

const moveVotesSQL = `UPDATE votes SET post_id = $2 WHERE organization_id = $1 AND post_id = ANY ($3::uuid[])`

// The new post is a change of the comment, so updated_at changes, too.
const moveCommentsSQL = `UPDATE comments SET post_id = $2, updated_at = greatest(updated_at, clock_timestamp())
WHERE organization_id = $1 AND post_id = ANY ($3::uuid[])`

// Posts that were merged into a source earlier now point to the target. Readers therefore never
// have to follow more than one step.
const moveMergedSQL = `UPDATE posts SET merged_into_id = $2, updated_at = greatest(updated_at, clock_timestamp())
WHERE organization_id = $1 AND merged_into_id = ANY ($3::uuid[])`

// movePosts moves to a post the votes and comments of other posts of its organization, and the
// posts that were merged into them. It returns the number of votes that the post gained; each
// person has one vote. The caller holds locks on all of the posts.
func movePosts(ctx context.Context, tx *db.Tx, to publicid.Post, from []publicid.Post) (votes int, err error) {
	ids := make([]string, len(from))
	for i, id := range from {
		ids[i] = id.UUID().String()
	}
	for _, statement := range []string{dropVotesSQL, moveCommentsSQL, moveMergedSQL, moveVotesSQL} {
		if votes, err = postgres.ExecTx(ctx, tx, statement, to, ids); err != nil {
			return 0, errors.Wrap(err, "merge posts")
		}
	}
	// The last statement moved the votes.
	return votes, nil
}
