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

// InsertGuest makes a person a guest of the organization: the contact, or who is known by the hash
// of an address alone. Where somebody else does at the same time, for the contact or the address,
// it waits and inserts nothing.
func InsertGuest(
	ctx context.Context, tx *db.Tx, in publicid.Organization, id publicid.User, contact *publicid.Contact, hash *[]byte,
) error {
	var address []byte
	if hash != nil {
		address = *hash
	}
	if _, err := tx.ExecContext(ctx, insertGuestSQL, id, in, id.String(), contact, address, Now()); err != nil {
		return errors.Wrap(err, "insert the guest")
	}
	return nil
}
