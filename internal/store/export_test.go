package store

import "github.com/jackc/pgx/v5/pgxpool"

// PoolOf is a store's pool.
func PoolOf(s *Store) *pgxpool.Pool { return s.pool }
