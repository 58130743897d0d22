package ratelimit

import (
	"context"
	"slices"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file has the token buckets of API keys, in hand-written SQL. All processes share them. The
// statements touch the rows of the given keys, of any organization.
//
// A row holds the time at which its bucket is full again, by the database's clock. That is the whole
// state of a bucket, and a clock that is set back refills nothing twice.
//
// The table is unlogged, so a commit waits neither for the disk nor for a standby. After a crash of
// the server, or a failover to a standby, all buckets are full.

// TokenAsk asks for tokens of a key's bucket.
type TokenAsk struct {
	Key publicid.APIKey
	// PerMinute is the size of the bucket and the number of tokens that flow into it in a minute.
	PerMinute int
	// Needed are tokens that requests wait for. Ahead are further tokens, to keep for later
	// requests. At most a quarter of the available tokens are granted ahead, so that the last
	// ones go to requests that wait.
	Needed, Ahead int
	// Owed are tokens that were spent without asking. A negative number gives tokens back.
	Owed int
}

// TokenGrant is the answer to a TokenAsk.
type TokenGrant struct {
	Granted int
	// Missing is the number of tokens that the bucket now lacks until it is full. It is at most
	// the size of the bucket, however many tokens were owed.
	Missing float64
}

// The statement locks the rows in the order of their ids and then reads the clock. After a wait for
// a row it therefore never uses a time from before the row changed. Postgres stores microseconds, so
// a token counts as available if a thousandth of it is missing. The array is selected as in seeSQL.
const takeFromBucketsSQL = `
WITH asked AS (
  SELECT * FROM unnest((SELECT $1::uuid[]), $2::float8[], $3::float8[], $4::float8[], $5::float8[]) WITH ORDINALITY
    AS a(bucket_id, budget, needed, ahead, owed, place)
), held AS (
  SELECT bucket_id, full_at FROM token_buckets WHERE bucket_id = ANY ((SELECT $1::uuid[])::uuid[])
  ORDER BY bucket_id FOR NO KEY UPDATE
), found AS MATERIALIZED (
  SELECT a.*, full_at, clock_timestamp() AS at FROM held JOIN asked a USING (bucket_id)
), lacking AS (
  SELECT *, least(budget, greatest(0,
    extract(epoch FROM greatest(full_at, at) - at)::float8 * budget / 60 + owed)) AS missing FROM found
), there AS (
  SELECT *, floor(budget - missing + 0.001) AS there FROM lacking
), decided AS (
  SELECT *, least(there, needed + least(ahead, floor(there / 4))) AS granted FROM there
)
UPDATE token_buckets r SET full_at = d.at + make_interval(secs => (d.missing + d.granted) * 60 / d.budget)
FROM decided d WHERE r.bucket_id = d.bucket_id
RETURNING d.place, d.granted::int, d.missing + d.granted`

const fullBucketsSQL = `
INSERT INTO token_buckets (bucket_id, full_at) SELECT id, '-infinity' FROM unnest($1::uuid[]) AS k(id) ORDER BY id
ON CONFLICT DO NOTHING`

// TakeTokens takes tokens out of the buckets of API keys. Each key must occur in one ask only.
// Grants are in the order of the asks.
func TakeTokens(ctx context.Context, s *postgres.DB, asks []TokenAsk) ([]TokenGrant, error) {
	grants, missing := make([]TokenGrant, len(asks)), make([]int, len(asks))
	for place := range asks {
		missing[place] = place
	}
	// RemoveFullBuckets may remove an existing bucket between the two statements of takeTokens.
	for range bucketTries {
		taken, err := takeTokens(ctx, s, asks, missing, grants)
		if err != nil {
			return nil, errors.Wrap(err, "take tokens of API keys")
		}
		missing = slices.DeleteFunc(missing, func(place int) bool { return taken[place] })
		if len(missing) == 0 {
			return grants, nil
		}
	}
	return nil, errors.New("the bucket of an API key is gone")
}

// bucketTries limits how often a bucket is created. Full buckets are removed at most once a minute.
const bucketTries = 10

// takeTokens creates missing buckets and takes tokens, in one round trip, for the asks at these
// places. It returns the places at which it took tokens.
func takeTokens(ctx context.Context, s *postgres.DB, asks []TokenAsk, places []int, grants []TokenGrant) (taken map[int]bool, err error) {
	keys, budgets := make([]string, len(places)), make([]float64, len(places))
	needed, ahead, owed := make([]float64, len(places)), make([]float64, len(places)), make([]float64, len(places))
	for i, place := range places {
		a := asks[place]
		keys[i], budgets[i] = a.Key.UUID().String(), float64(a.PerMinute)
		needed[i], ahead[i], owed[i] = float64(a.Needed), float64(a.Ahead), float64(a.Owed)
	}
	var both pgx.Batch
	both.Queue(fullBucketsSQL, keys)
	taken = make(map[int]bool, len(places))
	both.Queue(takeFromBucketsSQL, keys, budgets, needed, ahead, owed).Query(func(rows pgx.Rows) error {
		var i int
		var g TokenGrant
		_, err := pgx.ForEachRow(rows, []any{&i, &g.Granted, &g.Missing}, func() error {
			place := places[i-1]
			grants[place], taken[place] = g, true
			return nil
		})
		return err
	})
	return taken, s.Across("a process takes the tokens of all its keys together").SendBatch(ctx, &both)
}

const removeFullBucketsSQL = `
DELETE FROM token_buckets WHERE bucket_id IN (
  SELECT bucket_id FROM token_buckets WHERE full_at < now() FOR UPDATE SKIP LOCKED)`

// RemoveFullBuckets removes the rows of full buckets. A bucket without a row is full.
func RemoveFullBuckets(ctx context.Context, s *postgres.DB) error {
	if _, err := s.Across("a process takes the tokens of all its keys together").Exec(ctx, removeFullBucketsSQL); err != nil {
		return errors.Wrap(err, "remove full buckets of API keys")
	}
	return nil
}
