package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// A conflict may be on the contact or on the address hash.
const insertGuestSQL = `
INSERT INTO users (id, organization_id, name, role, kind, contact_id, email_hash, created_at, updated_at)
VALUES ($2, $1, '', NULL, 'guest', $3, $4, $5, $5) ON CONFLICT DO NOTHING`

// insertGuest makes a person a guest of the organization: a contact, or a person who is known only
// by an address hash. If another transaction inserts a guest for the same contact or address, it
// waits for that transaction and inserts nothing.
func insertGuest(
	ctx context.Context, tx *db.Tx, id publicid.User, contact *publicid.Contact, hash *[]byte,
) error {
	var address []byte
	if hash != nil {
		address = *hash
	}
	if _, err := postgres.ExecTx(ctx, tx, insertGuestSQL, id, contact, address, postgres.Now()); err != nil {
		return errors.Wrap(err, "insert the guest")
	}
	return nil
}
