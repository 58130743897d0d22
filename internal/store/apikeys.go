package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

const keysThereSQL = `SELECT hash FROM api_keys WHERE hash = ANY($1)`

// KeysThere returns those of the hashes that some API key has, of whatever
// organization and valid or not.
func (s *Store) KeysThere(ctx context.Context, hashes [][]byte) ([][]byte, error) {
	rows, err := s.pool.Query(ctx, keysThereSQL, hashes)
	if err != nil {
		return nil, errors.Wrap(err, "look for API keys")
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, errors.Wrap(err, "look for API keys")
	}
	return there, nil
}

const noteKeyUseSQL = `
UPDATE api_keys SET last_used_at = $2
WHERE id IN (SELECT id FROM api_keys WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED)`

// NoteKeyUse writes down when an API key, of any organization, was used. Where somebody
// holds its row, it doesn't: the next use will do.
func (s *Store) NoteKeyUse(ctx context.Context, id publicid.APIKey, at time.Time) error {
	if _, err := s.pool.Exec(ctx, noteKeyUseSQL, id, at); err != nil {
		return errors.Wrap(err, "note the use of an API key")
	}
	return nil
}
