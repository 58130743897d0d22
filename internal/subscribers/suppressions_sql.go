package subscribers

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
)

// suppression is the reason why the statements of this file touch rows of all organizations.
const suppression = "a suppressed address is suppressed for all organizations"

// A suppression is an address to which we send no more e-mail. It applies to all organizations,
// because they would all write to the same mailbox. Only the hash of the address is stored, as in
// contacts.

// suppress suppresses the addresses with these hashes. It returns how many were not suppressed yet.
func suppress(ctx context.Context, s *postgres.DB, hashes ...[]byte) (int, error) {
	// All callers insert in the same order, which prevents deadlocks.
	done, err := s.Across(suppression).Exec(ctx, `INSERT INTO mail_suppressions (email_hash)
SELECT DISTINCT hash FROM unnest($1::bytea[]) AS h(hash) ORDER BY hash ON CONFLICT DO NOTHING`, hashes)
	if err != nil {
		return 0, errors.Wrap(err, "suppress addresses")
	}
	return int(done.RowsAffected()), nil
}

// isSuppressed reports whether the address with this hash is suppressed.
func isSuppressed(ctx context.Context, s *postgres.DB, hash []byte) (is bool, err error) {
	err = s.Across(suppression).QueryRow(ctx, `SELECT EXISTS (SELECT FROM mail_suppressions WHERE email_hash = $1)`, hash).Scan(&is)
	if err != nil {
		return false, errors.Wrap(err, "look for a suppression")
	}
	return is, nil
}

// suppressed returns the set of those hashes whose addresses are suppressed.
func suppressed(ctx context.Context, s *postgres.DB, hashes [][]byte) (map[string]bool, error) {
	rows, err := s.Across(suppression).Query(ctx, `SELECT email_hash FROM mail_suppressions WHERE email_hash = ANY ($1::bytea[])`, hashes)
	if err != nil {
		return nil, errors.Wrap(err, "look for suppressions")
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, errors.Wrap(err, "read suppressions")
	}
	all := make(map[string]bool, len(found))
	for _, hash := range found {
		all[string(hash)] = true
	}
	return all, nil
}

// unsuppress lifts the suppression of the address with this hash.
func unsuppress(ctx context.Context, tx *db.Tx, hash []byte) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM mail_suppressions WHERE email_hash = $1`, hash); err != nil {
		return errors.Wrap(err, "lift a suppression")
	}
	return nil
}
