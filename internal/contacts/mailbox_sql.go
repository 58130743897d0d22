package contacts

import (
	"bytes"
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
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
func NoteSpelling(ctx context.Context, tx *db.Tx, s Spelled) error {
	if bytes.Equal(s.EmailHash, s.Mailbox) {
		return nil
	}
	_, err := postgres.ExecTx(ctx, tx, `INSERT INTO address_spellings (organization_id, email_hash, mailbox_hash) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`, s.EmailHash, s.Mailbox)
	if err != nil {
		return errors.Wrap(err, "note the spelling of an address")
	}
	return nil
}

const spellingsSQL = `SELECT email_hash FROM address_spellings WHERE organization_id = $1 AND mailbox_hash = $2`

// Spellings returns the hashes of all known spellings of a mailbox, and both hashes of the given address.
func Spellings(ctx context.Context, d *postgres.DB, s Spelled) ([][]byte, error) {
	rows, err := d.Query(ctx, spellingsSQL, s.Mailbox)
	if err != nil {
		return nil, errors.Wrap(err, "look for spellings of an address")
	}
	hashes, err := pgx.AppendRows([][]byte{s.EmailHash, s.Mailbox}, rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, errors.Wrap(err, "read spellings of an address")
	}
	return hashes, nil
}

// SpellingsTx is Spellings in a transaction.
func SpellingsTx(ctx context.Context, tx *db.Tx, s Spelled) ([][]byte, error) {
	hashes := [][]byte{s.EmailHash, s.Mailbox}
	if err := postgres.QueryTx(ctx, tx, postgres.All(&hashes, pgx.RowTo[[]byte]), spellingsSQL, s.Mailbox); err != nil {
		return nil, errors.Wrap(err, "look for spellings of an address")
	}
	return hashes, nil
}
