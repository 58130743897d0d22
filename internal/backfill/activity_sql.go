package backfill

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Activity summarizes the public activity of a person who is not a contact.
type Activity struct {
	// Source is the source of the oldest activity, in the same terms as a contact's source.
	Source      string
	First, Last time.Time
}

// A post refers to its author only through the guest user. A person who is neither member nor
// contact has only the hash. Deleted posts and comments don't count.
//
// OFFSET 0 keeps the planner from reading the posts of all authors. A member may have a thousand
// posts, and the planner would expect as many of each guest.
const visitorsActivitySQL = `
SELECT DISTINCT ON (hash) hash, source, at, max(at) OVER (PARTITION BY hash) FROM (
  SELECT email_hash AS hash, 'public_vote' AS source, created_at AS at FROM votes
  WHERE organization_id = $1 AND email_hash = ANY($2::bytea[]) AND user_id IS NULL AND contact_id IS NULL
  UNION ALL
  SELECT c.email_hash, 'public_comment', c.created_at FROM comments c
  JOIN users u ON u.organization_id = c.organization_id AND u.id = c.author_user_id AND u.kind = 'guest'
  WHERE c.organization_id = $1 AND c.email_hash = ANY($2::bytea[]) AND c.contact_id IS NULL AND c.deleted_at IS NULL
  UNION ALL
  SELECT u.email_hash, 'public_post', p.created_at FROM users u, LATERAL (
    SELECT created_at FROM posts
    WHERE organization_id = u.organization_id AND author_user_id = u.id AND contact_id IS NULL AND deleted_at IS NULL OFFSET 0
  ) p
  WHERE u.organization_id = $1 AND u.email_hash = ANY($2::bytea[]) AND u.kind = 'guest'
) AS activity WHERE at < $3 ORDER BY hash, at, source`

// VisitorsActivity finds the public activity before a moment of the people with these address
// hashes. The result is keyed by the hash.
func VisitorsActivity(
	ctx context.Context, tx *db.Tx, hashes [][]byte, before time.Time,
) (map[string]Activity, error) {
	found := map[string]Activity{}
	var hash []byte
	var a Activity
	err := postgres.QueryTx(ctx, tx, postgres.EachRow([]any{&hash, &a.Source, &a.First, &a.Last}, func() {
		found[string(hash)] = a
	}), visitorsActivitySQL, hashes, before)
	if err != nil {
		return nil, errors.Wrap(err, "look for activity")
	}
	return found, nil
}

// leftOfBackfill counts the addresses that a backfill of the organization has not processed yet.
func leftOfBackfill(ctx context.Context, s *postgres.DB, id publicid.ContactBackfill) (n int, err error) {
	err = s.QueryRow(ctx, []any{&n}, `SELECT count(*)::int FROM backfill_addresses WHERE organization_id = $1 AND backfill_id = $2`, id.UUID())
	if err != nil {
		return 0, errors.Wrap(err, "count the remaining addresses of a backfill")
	}
	return n, nil
}
