package store

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// By hand, because Ent leaves out what is null, and the column's default is a member's role.
const insertGuestSQL = `
INSERT INTO users (id, organization_id, email, name, role, kind, contact_id, email_hash, created_at, updated_at)
VALUES ($1, $2, $3, '', NULL, 'guest', $4, $5, $6, $6) ON CONFLICT DO NOTHING`

// InsertGuest makes a contact a guest of its organization. Where somebody else does at the same
// time, for the contact or its address, it waits and inserts nothing.
func InsertGuest(ctx context.Context, tx *db.Tx, id publicid.User, of *db.Contact) error {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	if _, err := tx.ExecContext(ctx, insertGuestSQL, id, of.OrganizationID, id.String(), of.ID, hash, Now()); err != nil {
		return errors.Wrap(err, "insert the guest")
	}
	return nil
}
