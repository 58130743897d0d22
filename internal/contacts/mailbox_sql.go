package contacts

import (
	"bytes"
	"context"
	stdsql "database/sql"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// This file has the spellings of mailboxes. A person must not vote twice with two spellings of the same
// address, such as a.b@gmail.com and ab@gmail.com. A vote has the hash of the address as it was written,
// because contacts are found by it. A hash does not reveal the mailbox, so each spelling that is not the
// plain one gets a row here with its first vote. Older votes have no row and are found by their own
// spelling.

// Spelled is an address of a visitor.
type Spelled struct {
	// EmailHash is the hash of the address as it was written. Mailbox is the hash of its plain spelling.
	EmailHash, Mailbox []byte
}

// NoteSpelling notes the mailbox of an address, unless the address has the plain spelling.
func NoteSpelling(ctx context.Context, tx *db.Tx, of publicid.Organization, s Spelled) error {
	if bytes.Equal(s.EmailHash, s.Mailbox) {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO address_spellings (organization_id, email_hash, mailbox_hash) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`, of, s.EmailHash, s.Mailbox)
	if err != nil {
		return errors.Wrap(err, "note the spelling of an address")
	}
	return nil
}

// Spellings returns the hashes of all known spellings of a mailbox, and both hashes of the given address.
func Spellings(ctx context.Context, in interface {
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
}, of publicid.Organization, s Spelled,
) ([][]byte, error) {
	hashes := [][]byte{s.EmailHash, s.Mailbox}
	rows, err := in.QueryContext(ctx, `SELECT email_hash FROM address_spellings WHERE organization_id = $1 AND mailbox_hash = $2`, of, s.Mailbox)
	if err != nil {
		return nil, errors.Wrap(err, "look for spellings of an address")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var hash []byte
		if err := rows.Scan(&hash); err != nil {
			return nil, errors.Wrap(err, "read a spelling of an address")
		}
		hashes = append(hashes, hash)
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "look for spellings of an address")
	}
	return hashes, nil
}
