package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// Activity is what is there of a person who acted on public boards and is no contact.
type Activity struct {
	// Source is how the oldest came in, in the words of a contact's source.
	Source      string
	First, Last time.Time
}

// A post knows its author by the guest alone. Whoever is nobody's member and no contact has only the
// hash; what was deleted is no activity any more. Skipping none of the posts keeps the planner from reading those of all
// authors: a member's thousand posts make it expect as many of a guest.
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

// VisitorsActivity finds what people with these hashes of addresses did on public boards before a
// moment, by the hash.
func VisitorsActivity(
	ctx context.Context, tx *db.Tx, of publicid.Organization, hashes [][]byte, before time.Time,
) (map[string]Activity, error) {
	found := map[string]Activity{}
	rows, err := tx.QueryContext(ctx, visitorsActivitySQL, of, hashes, before)
	if err != nil {
		return nil, errors.Wrap(err, "look for activity")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var hash []byte
		var a Activity
		if err := rows.Scan(&hash, &a.Source, &a.First, &a.Last); err != nil {
			return nil, errors.Wrap(err, "read activity")
		}
		found[string(hash)] = a
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "look for activity")
	}
	return found, nil
}

// EndBackfill has no backfill of the organization look for a contact's address any more. It waits for
// the page that does so just now.
func EndBackfill(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM backfill_addresses WHERE organization_id = $1 AND email_hash = $2`, of.OrganizationID, *of.EmailHash)
	if err != nil {
		return errors.Wrap(err, "erase what a backfill looks for")
	}
	return nil
}

// LeftOfBackfill counts the addresses that a backfill, of any organization, has still to look for.
func (s *Store) LeftOfBackfill(ctx context.Context, id publicid.ContactBackfill) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*)::int FROM backfill_addresses WHERE backfill_id = $1`, id.UUID().String()).Scan(&n)
	if err != nil {
		return 0, errors.Wrap(err, "count what is left of a backfill")
	}
	return n, nil
}

const cancelBackfillSQL = `
WITH ended AS (
  UPDATE contact_backfills SET status = 'canceled', finished_at = now() WHERE id = $1 AND status = 'running' RETURNING id
) DELETE FROM backfill_addresses WHERE backfill_id IN (SELECT id FROM ended)`

// CancelBackfill ends a backfill, of any organization, that an operator ended, with the addresses that
// are left. One that ended by itself stays as it is.
func (s *Store) CancelBackfill(ctx context.Context, id publicid.ContactBackfill) error {
	if _, err := s.pool.Exec(ctx, cancelBackfillSQL, id.UUID().String()); err != nil {
		return errors.Wrap(err, "cancel the backfill")
	}
	return nil
}

// RunningBackfill is a backfill that somebody should be doing.
type RunningBackfill struct {
	ID           publicid.ContactBackfill
	Organization publicid.Organization
	CreatedAt    time.Time
}

const runningBackfillsSQL = `
SELECT id, organization_id, created_at FROM contact_backfills
WHERE status = 'running' AND created_at <= now() - make_interval(secs => $1) AND (created_at, id) > ($2, $3::uuid)
ORDER BY created_at, id LIMIT $4`

// RunningBackfills are RunningRecoveries for backfills. It is for the sweep.
func (s *Store) RunningBackfills(ctx context.Context, grace time.Duration, last RunningBackfill, limit int) ([]RunningBackfill, error) {
	rows, err := s.pool.Query(ctx, runningBackfillsSQL, grace.Seconds(), last.CreatedAt, last.ID.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "find running backfills")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RunningBackfill, err error) {
		return r, row.Scan(&r.ID, &r.Organization, &r.CreatedAt)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read running backfills")
	}
	return found, nil
}
