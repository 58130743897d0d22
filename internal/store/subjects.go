package store

import (
	"context"
	"fmt"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// This file has the hand-written SQL of exports and erasures. It changes columns that are immutable
// in Ent, and walks through events. Each statement is limited to the given organization or the given
// request, except those for the sweep.

// ErasePerson removes the address of a contact from the organization:
//   - It removes the address hash from the contact's votes and comments. It also removes it from
//     those made with the same address, unless they belong to another contact or to a member.
//   - It removes the name and the address hash from the contact's guest user.
//   - If no other contact has the address, it removes waiting e-mails, spellings of the address and
//     choices of e-mails. It keeps an opt-out, so that the person is not e-mailed again.
//
// Counts stay.
func ErasePerson(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	// This lock serializes the erasures of two contacts with the same address. The second one finds
	// no other contact with the address, and removes the choices for it.
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1::text || encode($2, 'hex'), 0))`, of.OrganizationID, hash); err != nil {
		return errors.Wrap(err, "await other erasures of the person")
	}
	for _, statement := range []string{
		`UPDATE votes SET email_hash = NULL WHERE organization_id = $1
  AND (contact_id = $2 OR email_hash = $3 AND contact_id IS NULL AND user_id IS NULL)`,
		`UPDATE comments c SET email_hash = NULL WHERE organization_id = $1
  AND (contact_id = $2 OR email_hash = $3 AND contact_id IS NULL
    AND NOT EXISTS (SELECT FROM users u WHERE u.organization_id = $1 AND u.id = c.author_user_id AND u.kind = 'member'))`,
		`UPDATE users u SET name = '', contact_id = NULL, email_hash = NULL WHERE organization_id = $1 AND kind = 'guest'
  AND (contact_id = $2 OR email_hash = $3
    AND NOT EXISTS (SELECT FROM contacts o WHERE o.organization_id = $1 AND o.id = u.contact_id))`,
		`DELETE FROM subscriber_mails WHERE organization_id = $1 AND email_hash = $3` + nobodyElseSQL,
		// An opt-out stays, because the address may come back.
		`DELETE FROM subscriptions WHERE organization_id = $1 AND email_hash = $3 AND status_updates` + nobodyElseSQL,
		`UPDATE subscriptions SET changelog = false WHERE organization_id = $1 AND email_hash = $3` + nobodyElseSQL,
		// The slot still counts, under a random hash. Otherwise an organization could erase and
		// identify people again to e-mail more strangers than its rate allows.
		`UPDATE first_mails SET email_hash = uuid_send(gen_random_uuid()) WHERE organization_id = $1 AND email_hash = $3` + nobodyElseSQL,
		`DELETE FROM address_spellings WHERE organization_id = $1 AND (email_hash = $3 OR mailbox_hash = $3)` + nobodyElseSQL,
	} {
		if _, err := tx.ExecContext(ctx, statement, of.OrganizationID, of.ID, hash); err != nil {
			return errors.Wrap(err, "erase the person")
		}
	}
	return nil
}

// EraseMemberHashes removes the hash of a removed member's address from their votes and comments.
func EraseMemberHashes(ctx context.Context, tx *db.Tx, of *db.User, hash []byte) error {
	for _, statement := range []string{
		`UPDATE votes SET email_hash = NULL WHERE organization_id = $1 AND email_hash = $3 AND user_id = $2`,
		`UPDATE comments SET email_hash = NULL WHERE organization_id = $1 AND email_hash = $3 AND author_user_id = $2`,
	} {
		if _, err := tx.ExecContext(ctx, statement, of.OrganizationID, of.ID, hash); err != nil {
			return errors.Wrap(err, "erase the hashes of a member's address")
		}
	}
	return nil
}

// nobodyElseSQL is the condition that no other contact has the address. Contacts with the same
// address share the choices that were made for it.
const nobodyElseSQL = ` AND NOT EXISTS (SELECT FROM contacts o WHERE o.organization_id = $1 AND o.email_hash = $3 AND o.id <> $2)`

// EndLinks removes the pending actions whose links were mailed to a contact's address. If a link is
// being used, it waits for the end of that.
func EndLinks(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM interactions WHERE organization_id = $1 AND email_hash = $2`, of.OrganizationID, *of.EmailHash)
	if err != nil {
		return errors.Wrap(err, "erase what waits for a link")
	}
	return nil
}

// NoteTexts notes the ids of the posts and comments that a contact and its guest have written, for
// an erasure. It also notes the guest's id, because the author of a deleted comment is only in its
// event. It leaves out posts of another contact: contacts with the same address share their guest.
func NoteTexts(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, of *db.Contact) error {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	for _, statement := range []string{
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'post', id FROM posts WHERE organization_id = $1
  AND (contact_id = $2 OR contact_id IS NULL AND author_user_id IN (` + guestsSQL + `))`,
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'comment', id FROM comments c WHERE organization_id = $1
  AND (contact_id = $2 OR email_hash = $3 AND contact_id IS NULL
    AND NOT EXISTS (SELECT FROM users u WHERE u.organization_id = $1 AND u.id = c.author_user_id AND u.kind = 'member'))`,
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'author', guest.id FROM (` + guestsSQL + `) guest`,
	} {
		if _, err := tx.ExecContext(ctx, statement, of.OrganizationID, of.ID, hash, request); err != nil {
			return errors.Wrap(err, "note the person's posts and comments")
		}
	}
	return nil
}

// guestsSQL selects the guest users of a contact, without those of other contacts.
const guestsSQL = `SELECT u.id FROM users u WHERE u.organization_id = $1 AND u.kind = 'guest' AND (u.contact_id = $2
  OR u.email_hash = $3 AND NOT EXISTS (SELECT FROM contacts o WHERE o.organization_id = $1 AND o.id = u.contact_id))`

// GuestsOf returns the guest users of a contact.
func GuestsOf(ctx context.Context, tx *db.Tx, of *db.Contact) ([]publicid.User, error) {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	return oneColumn[publicid.User](ctx, tx, guestsSQL, of.OrganizationID, of.ID, hash)
}

// FirstNoted returns the smallest id that a request has noted, or the zero id if there is none. Ids
// begin with their time of creation, so it belongs to the oldest item.
func FirstNoted(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest) (first uuid.UUID, err error) {
	found, err := oneColumn[uuid.UUID](ctx, tx, `SELECT item_id FROM subject_records WHERE request_id = $1 ORDER BY item_id LIMIT 1`, request)
	if len(found) > 0 {
		first = found[0]
	}
	return first, err
}

// EventHead is the beginning of an event.
type EventHead struct {
	ID   publicid.Event
	Type string
	// Head is the beginning of the payload.
	Head []byte
}

// EventHeads reads the beginnings of an organization's events after an id, in the order of their
// ids. With it, a caller walks through all events. It uses the index that the deliveries' foreign
// key needs, so the events of other organizations cost nothing.
func EventHeads(
	ctx context.Context, tx *db.Tx, of publicid.Organization, after uuid.UUID, head, limit int,
) (found []EventHead, err error) {
	// The limit is a literal as in retention.go.
	rows, err := tx.QueryContext(ctx, fmt.Sprintf(`SELECT id, type, substring(payload, 1, %d)
FROM events WHERE organization_id = $1 AND id > $2 ORDER BY organization_id, id LIMIT %d`, head, limit), of, after)
	if err != nil {
		return nil, errors.Wrap(err, "walk through the events")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e EventHead
		if err := rows.Scan(&e.ID, &e.Type, &e.Head); err != nil {
			return nil, errors.Wrap(err, "read the beginning of an event")
		}
		found = append(found, e)
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "walk through the events")
	}
	return found, nil
}

// ReplacePayload replaces the payload of an event. Later attempts and reads use the new one.
func ReplacePayload(ctx context.Context, tx *db.Tx, of publicid.Organization, id publicid.Event, payload []byte) error {
	if _, err := tx.ExecContext(ctx, `UPDATE events SET payload = $3 WHERE organization_id = $1 AND id = $2`, of, id, payload); err != nil {
		return errors.Wrap(err, "replace a payload")
	}
	return nil
}

// These select the deliveries of the events that an erasure has changed, and of the event of the
// deletion.
const (
	eventsOfRequest = `subject_records r JOIN deliveries d ON d.event_id = r.item_id`
	ofRequest       = `r.request_id = $1 AND r.kind = 'event'`
)

// ClearAnswers removes the answers of receivers to the deliveries of a request's events, because
// they may quote the events. It removes at most limit answers, and returns how many.
func ClearAnswers(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, limit int) (int64, error) {
	done, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE attempts SET response_body = NULL WHERE id IN (
  SELECT a.id FROM %s JOIN attempts a ON a.delivery_id = d.id WHERE %s AND a.response_body IS NOT NULL LIMIT %d)`,
		eventsOfRequest, ofRequest, limit), request)
	if err != nil {
		return 0, errors.Wrap(err, "clear the receivers' answers")
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, errors.Wrap(err, "count the cleared answers")
	}
	return n, nil
}

// OnTheirWay counts the deliveries of a request's events that a worker may be attempting with the
// old payload. These are the deliveries with an attempt under way. If pending is true, it counts all
// pending ones, too. An attempt is under way until it is recorded, which may be after the end of its
// lease.
func OnTheirWay(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, pending bool) (int, error) {
	found, err := oneColumn[int](ctx, tx,
		`SELECT count(*)::int FROM `+eventsOfRequest+` WHERE `+ofRequest+`
  AND (d.lease_until > now() OR d.status = 'pending' AND (d.lease_until IS NOT NULL OR $2))`, request, pending)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

func oneColumn[T any](ctx context.Context, tx *db.Tx, query string, args ...any) (all []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, errors.Wrap(err, "ask for a data-subject request")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, errors.Wrap(err, "read of a data-subject request")
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "ask for a data-subject request")
	}
	return all, nil
}
