package subscribers

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file has the SQL of the e-mails to end-users. A recipient is identified by a hash of the
// e-mail address, as in votes. Votes and comments of members do not count, because members are not
// end-users.

// endWindowSQL are the statements that end a window, in their order. $1 is the organization, $2 the
// digest.
var endWindowSQL = []string{
	// Updates that are committed later belong to the next window.
	`UPDATE subscriber_updates SET digest_id = $2 WHERE organization_id = $1 AND digest_id IS NULL`,
	// An e-mail mentions each post and each entry once. For a post, it compares the first status in
	// the window with the present one.
	`DELETE FROM subscriber_updates u WHERE u.organization_id = $1 AND u.digest_id = $2 AND EXISTS (
  SELECT FROM subscriber_updates o WHERE o.digest_id = $2 AND (o.post_id = u.post_id OR o.entry_id = u.entry_id) AND (o.created_at, o.id) < (u.created_at, u.id))`,
	`UPDATE subscriber_updates u SET status = p.status FROM posts p
WHERE u.organization_id = $1 AND u.digest_id = $2 AND p.organization_id = $1 AND p.id = u.post_id`,
	`DELETE FROM subscriber_updates WHERE organization_id = $1 AND digest_id = $2 AND post_id IS NOT NULL
  AND status IS NOT DISTINCT FROM previous_status`,
	// The recipients wrote, voted for or commented on one of the posts, or follow the changelog, and
	// are contacts by now. The sender checks each recipient's permission when it writes the e-mail.
	`WITH moved AS (SELECT p.id, p.contact_id, p.author_user_id FROM ` + readableSQL + `),
persons AS (
  SELECT c.email_hash FROM moved m JOIN contacts c ON c.organization_id = $1 AND c.id = m.contact_id
  UNION SELECT g.email_hash FROM moved m JOIN users g ON g.organization_id = $1 AND g.id = m.author_user_id
    WHERE m.contact_id IS NULL AND g.kind = 'guest'
  UNION SELECT v.email_hash FROM moved m JOIN votes v ON v.organization_id = $1 AND v.post_id = m.id WHERE v.user_id IS NULL
  UNION SELECT k.email_hash FROM moved m JOIN comments k ON k.organization_id = $1 AND k.post_id = m.id
    WHERE k.deleted_at IS NULL AND NOT ` + byMemberSQL + `
  UNION SELECT s.email_hash FROM subscriptions s WHERE s.organization_id = $1 AND s.changelog AND EXISTS (
    SELECT FROM subscriber_updates u WHERE u.digest_id = $2 AND u.entry_id IS NOT NULL)
)
INSERT INTO subscriber_mails (id, organization_id, created_at, digest_id, email_hash, due_at)
SELECT gen_random_uuid(), $1, now(), $2, h.email_hash, now() FROM persons h
WHERE EXISTS (SELECT FROM contacts c WHERE c.organization_id = $1 AND c.email_hash = h.email_hash)`,
}

const (
	// readableSQL selects the posts of a digest that everybody can read: those of public boards that
	// are neither deleted nor merged into another post.
	readableSQL = `subscriber_updates u
JOIN posts p ON p.organization_id = $1 AND p.id = u.post_id AND p.deleted_at IS NULL AND p.merged_into_id IS NULL
JOIN boards b ON b.organization_id = $1 AND b.id = p.board_id AND b.public
WHERE u.organization_id = $1 AND u.digest_id = $2`
	byMemberSQL = `EXISTS (SELECT FROM users w WHERE w.organization_id = $1 AND w.id = k.author_user_id AND w.kind = 'member')`
)

// endWindow collects an organization's updates for end-users into a digest, with an e-mail for each
// recipient.
func endWindow(ctx context.Context, tx *db.Tx, digest uuid.UUID) error {
	for _, statement := range endWindowSQL {
		if _, err := postgres.ExecTx(ctx, tx, statement, digest); err != nil {
			return errors.Wrap(err, "end the window")
		}
	}
	return nil
}

// removeTold removes the updates of digests that have no e-mails left to send.
func removeTold(ctx context.Context, tx *db.Tx) error {
	_, err := postgres.ExecTx(ctx, tx, `DELETE FROM subscriber_updates u WHERE u.organization_id = $1 AND u.digest_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM subscriber_mails m WHERE m.digest_id = u.digest_id)`)
	if err != nil {
		return errors.Wrap(err, "remove the updates of sent digests")
	}
	return nil
}

// pendingMail is an e-mail to an end-user that a worker has taken to send it.
type pendingMail struct {
	ID        publicid.SubscriberMail
	Digest    uuid.UUID
	EmailHash []byte
	CreatedAt time.Time
}

const takeMailSQL = `
UPDATE subscriber_mails SET due_at = now() + make_interval(secs => $2) WHERE id = (
  SELECT id FROM subscriber_mails WHERE organization_id = $1 AND due_at <= now() ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, digest_id, email_hash, created_at`

// takeMail takes a due e-mail of the organization in the context, or returns nil if none is due. No
// other worker takes the e-mail until the lease ends.
func takeMail(ctx context.Context, s *postgres.DB, lease time.Duration) (*pendingMail, error) {
	rows, err := s.Query(ctx, takeMailSQL, lease.Seconds())
	if err != nil {
		return nil, errors.Wrap(err, "take an e-mail to send it")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m pendingMail, err error) {
		return m, row.Scan(&m.ID, &m.Digest, &m.EmailHash, &m.CreatedAt)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the e-mail that was taken")
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// movedPost is a post whose status has changed.
type movedPost struct {
	Title, Slug, Board, Status string
}

const movedPostsSQL = `SELECT p.title, p.slug, b.slug, u.status FROM ` + readableSQL + ` AND (
  EXISTS (SELECT FROM votes v WHERE v.organization_id = $1 AND v.post_id = p.id AND v.email_hash = $3 AND v.user_id IS NULL)
  OR EXISTS (SELECT FROM comments k WHERE k.organization_id = $1 AND k.post_id = p.id AND k.email_hash = $3
    AND k.deleted_at IS NULL AND NOT ` + byMemberSQL + `)
  OR EXISTS (SELECT FROM contacts c WHERE c.organization_id = $1 AND c.id = p.contact_id AND c.email_hash = $3)
  OR p.contact_id IS NULL AND EXISTS (
    SELECT FROM users g WHERE g.organization_id = $1 AND g.id = p.author_user_id AND g.kind = 'guest' AND g.email_hash = $3))
ORDER BY p.id DESC LIMIT $4`

// movedPosts returns the posts of a digest that the recipient wrote, voted for or commented on, and
// that everybody can read now. The organization is the one of the context.
func movedPosts(ctx context.Context, s *postgres.DB, m *pendingMail, limit int) ([]movedPost, error) {
	return mailed(ctx, s, movedPostsSQL, m, func(row pgx.CollectableRow) (p movedPost, err error) {
		return p, row.Scan(&p.Title, &p.Slug, &p.Board, &p.Status)
	}, m.EmailHash, limit)
}

// publishedEntry is an entry of a changelog that was published.
type publishedEntry struct {
	Title, Slug, Board string
	Version            *string
}

const publishedEntriesSQL = `SELECT e.title, e.slug, b.slug, e.version FROM subscriber_updates u
JOIN changelog_entries e ON e.organization_id = $1 AND e.id = u.entry_id AND e.state = 'published'
JOIN boards b ON b.organization_id = $1 AND b.id = e.board_id AND b.public AND b.show_changelog
WHERE u.organization_id = $1 AND u.digest_id = $2 ORDER BY e.published_at DESC, e.id DESC LIMIT $3`

// publishedEntries returns the entries of a digest that everybody can read now.
func publishedEntries(ctx context.Context, s *postgres.DB, m *pendingMail, limit int) ([]publishedEntry, error) {
	return mailed(ctx, s, publishedEntriesSQL, m, func(row pgx.CollectableRow) (e publishedEntry, err error) {
		return e, row.Scan(&e.Title, &e.Slug, &e.Board, &e.Version)
	}, limit)
}

func mailed[T any](ctx context.Context, s *postgres.DB, query string, m *pendingMail, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := s.Query(ctx, query, append([]any{m.Digest}, args...)...)
	if err != nil {
		return nil, errors.Wrap(err, "look for the updates of an e-mail")
	}
	found, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, errors.Wrap(err, "read the updates of an e-mail")
	}
	return found, nil
}
