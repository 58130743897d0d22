package store

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
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
