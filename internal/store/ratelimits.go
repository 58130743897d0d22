package store

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// This file has the token buckets of API keys, one for all processes, by hand-written
// SQL. A row says when its bucket is full again, by the database's clock, so one number
// is the whole state, and a clock that is set back refills nothing twice. The rows are
// those of the keys that are asked for, of whatever organization. Their table is
// unlogged: such a commit waits neither for the disk nor for a standby, and after a
// crash of the server, or on a standby that took over, all buckets are full.

// TokenAsk asks for tokens of a key's bucket.
type TokenAsk struct {
	Key publicid.APIKey
	// PerMinute is the bucket's size and what flows into it in a minute.
	PerMinute int
	// Needed are tokens that requests wait for. Ahead are more, to keep; of those no
	// more than a quarter of what is there is granted, so that the last ones go to
	// whom waits for them.
	Needed, Ahead int
	// Owed are tokens that were spent without asking; those below zero are given back.
	Owed int
}

// TokenGrant is what became of a TokenAsk.
type TokenGrant struct {
	Granted int
	// Missing is what the bucket lacks now until it is full. Nothing that was owed
	// makes it lack more than all.
	Missing float64
}

// Rows are locked in the order of their ids, and the clock is read when they are: who
// has waited for a row meets no moment from before it changed. Postgres keeps
// microseconds, so a token is there when a thousandth of it lacks.
const takeFromBucketsSQL = `
WITH asked AS (
  SELECT * FROM unnest($1::uuid[], $2::float8[], $3::float8[], $4::float8[], $5::float8[]) WITH ORDINALITY
    AS a(api_key_id, budget, needed, ahead, owed, place)
), held AS (
  SELECT api_key_id, full_at FROM rate_limits WHERE api_key_id = ANY ($1::uuid[])
  ORDER BY api_key_id FOR NO KEY UPDATE
), found AS MATERIALIZED (
  SELECT a.*, full_at, clock_timestamp() AS at FROM held JOIN asked a USING (api_key_id)
), lacking AS (
  SELECT *, least(budget, greatest(0,
    extract(epoch FROM greatest(full_at, at) - at)::float8 * budget / 60 + owed)) AS missing FROM found
), there AS (
  SELECT *, floor(budget - missing + 0.001) AS there FROM lacking
), decided AS (
  SELECT *, least(there, needed + least(ahead, floor(there / 4))) AS granted FROM there
)
UPDATE rate_limits r SET full_at = d.at + make_interval(secs => (d.missing + d.granted) * 60 / d.budget)
FROM decided d WHERE r.api_key_id = d.api_key_id
RETURNING d.place, d.granted::int, d.missing + d.granted`

const fullBucketsSQL = `
INSERT INTO rate_limits (api_key_id, full_at) SELECT id, '-infinity' FROM unnest($1::uuid[]) AS k(id) ORDER BY id
ON CONFLICT DO NOTHING`

// TakeTokens takes tokens out of the buckets of API keys, each of which is asked for
// once. Grants are in the order of the asks.
func (s *Store) TakeTokens(ctx context.Context, asks []TokenAsk) ([]TokenGrant, error) {
	grants, missed, err := s.takeTokens(ctx, asks)
	// A bucket that is made is full, and may be removed as such before it is taken from.
	for tries := 0; err == nil && len(missed) > 0; tries++ {
		if tries == bucketTries {
			return nil, errors.New("the bucket of an API key is gone")
		}
		keys, rest := make([]string, len(missed)), make([]TokenAsk, len(missed))
		for i, place := range missed {
			keys[i], rest[i] = asks[place].Key.UUID().String(), asks[place]
		}
		if _, err := s.pool.Exec(ctx, fullBucketsSQL, keys); err != nil {
			return nil, errors.Wrap(err, "make the buckets of API keys")
		}
		var late []TokenGrant
		var lost []int
		late, lost, err = s.takeTokens(ctx, rest)
		if err != nil {
			break
		}
		for i, grant := range late {
			grants[missed[i]] = grant
		}
		for i, place := range lost {
			lost[i] = missed[place]
		}
		missed = lost
	}
	if err != nil {
		return nil, err
	}
	return grants, nil
}

// bucketTries bounds how often a bucket is made: buckets are removed once a minute at most.
const bucketTries = 10

// takeTokens tells which of the buckets have no row.
func (s *Store) takeTokens(ctx context.Context, asks []TokenAsk) (grants []TokenGrant, missed []int, err error) {
	keys, budgets := make([]string, len(asks)), make([]float64, len(asks))
	needed, ahead, owed := make([]float64, len(asks)), make([]float64, len(asks)), make([]float64, len(asks))
	for i, a := range asks {
		keys[i], budgets[i] = a.Key.UUID().String(), float64(a.PerMinute)
		needed[i], ahead[i], owed[i] = float64(a.Needed), float64(a.Ahead), float64(a.Owed)
	}
	rows, err := s.pool.Query(ctx, takeFromBucketsSQL, keys, budgets, needed, ahead, owed)
	if err != nil {
		return nil, nil, errors.Wrap(err, "take tokens of API keys")
	}
	grants, found := make([]TokenGrant, len(asks)), make([]bool, len(asks))
	var place int
	var g TokenGrant
	_, err = pgx.ForEachRow(rows, []any{&place, &g.Granted, &g.Missing}, func() error {
		grants[place-1], found[place-1] = g, true
		return nil
	})
	if err != nil {
		return nil, nil, errors.Wrap(err, "take tokens of API keys")
	}
	for i := range found {
		if !found[i] {
			missed = append(missed, i)
		}
	}
	return grants, missed, nil
}

const removeFullBucketsSQL = `
DELETE FROM rate_limits WHERE api_key_id IN (
  SELECT api_key_id FROM rate_limits WHERE full_at < now() FOR UPDATE SKIP LOCKED)`

// RemoveFullBuckets removes the rows of buckets that are full: without a row a bucket is.
func (s *Store) RemoveFullBuckets(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, removeFullBucketsSQL); err != nil {
		return errors.Wrap(err, "remove full buckets of API keys")
	}
	return nil
}
