package privacy

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
)

// This file has the hand-written SQL of exports and erasures. It changes columns that are immutable
// in Ent, and walks through events. Each statement is limited to the given organization or the given
// request, except those for the sweep.

// erasePerson removes the address of a contact from the organization:
//   - It removes the address hash from the contact's votes and comments. It also removes it from
//     those made with the same address, unless they belong to another contact or to a member.
//   - It removes the name and the address hash from the contact's guest user.
//   - If no other contact has the address, it removes waiting e-mails, spellings of the address and
//     choices of e-mails. It keeps an opt-out, so that the person is not e-mailed again.
//
// Counts stay.
func erasePerson(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	// This lock serializes the erasures of two contacts with the same address. The second one finds
	// no other contact with the address, and removes the choices for it.
	if _, err := postgres.ExecTx(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || encode($2, 'hex'), 0))`, hash); err != nil {
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
		if _, err := postgres.ExecTx(ctx, tx, statement, of.ID, hash); err != nil {
			return errors.Wrap(err, "erase the person")
		}
	}
	return nil
}

// eraseMemberHashes removes the hash of a removed member's address from their votes and comments.
func eraseMemberHashes(ctx context.Context, tx *db.Tx, of *db.User, hash []byte) error {
	for _, statement := range []string{
		`UPDATE votes SET email_hash = NULL WHERE organization_id = $1 AND email_hash = $3 AND user_id = $2`,
		`UPDATE comments SET email_hash = NULL WHERE organization_id = $1 AND email_hash = $3 AND author_user_id = $2`,
	} {
		if _, err := postgres.ExecTx(ctx, tx, statement, of.ID, hash); err != nil {
			return errors.Wrap(err, "erase the hashes of a member's address")
		}
	}
	return nil
}

// nobodyElseSQL is the condition that no other contact has the address. Contacts with the same
// address share the choices that were made for it.
const nobodyElseSQL = ` AND NOT EXISTS (SELECT FROM contacts o WHERE o.organization_id = $1 AND o.email_hash = $3 AND o.id <> $2)`

// endLinks removes the pending actions whose links were mailed to a contact's address. If a link is
// being used, it waits for the end of that.
func endLinks(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	_, err := postgres.ExecTx(ctx, tx, `DELETE FROM interactions WHERE organization_id = $1 AND email_hash = $2`, *of.EmailHash)
	if err != nil {
		return errors.Wrap(err, "erase what waits for a link")
	}
	return nil
}
