package postgres

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Across reads rows of all organizations with the SQL of a feature. It is for the service's own work,
// for example the sweep. The task is for the text of an error, for example "find overdue entries".
func Across[T any](ctx context.Context, s *DB, task, query string, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, errors.Wrap(err, task)
	}
	found, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, errors.Wrap(err, task)
	}
	return found, nil
}

// ExecAcross is Across for a statement without a result.
func (s *DB) ExecAcross(ctx context.Context, task, statement string, args ...any) error {
	if _, err := s.pool.Exec(ctx, statement, args...); err != nil {
		return errors.Wrap(err, task)
	}
	return nil
}
