package delivery

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Result is the outcome of one attempt.
type Result struct {
	ID publicid.Delivery
	// Number of the attempt; 0 for a delivery that ends without one.
	Number    int
	StartedAt time.Time
	Duration  time.Duration
	// Response is the receiver's status, 0 without an answer.
	Response int
	Body     []byte
	// Error is empty when the attempt succeeded.
	Error string
	// Retry is the delay before the next attempt; nil when this was the last.
	Retry *time.Duration
	// Counts is true if the failure adds one to the webhook's streak of failures.
	Counts bool
	// Lease is the lease of the claim (Claimed.Lease).
	Lease time.Time
}

func (r Result) status() string {
	switch {
	case r.Error == "":
		return "succeeded"
	case r.Retry != nil:
		return "pending"
	default:
		return "failed"
	}
}

// A result takes effect only while the row has the lease of its claim, expired or not. If another
// worker has claimed the delivery since, its attempt is under way and is recorded instead.
//
// The streak of failures is in the webhook's row. The same statement records the outcome and moves
// the streak, so a crash cannot separate them. Within a batch, the outcomes count in the order of
// the batch. A success of a webhook without a streak leaves the webhook's row alone.
const recordSQL = `
WITH o AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::timestamptz[], $5::int[], $6::int[], $7::bytea[], $8::text[],
    $9::text[], $10::float8[], $11::bool[], $12::timestamptz[]) WITH ORDINALITY
    AS o(id, attempt_id, number, started_at, duration_ms, response, body, error, status, retry, counts, lease, place)
), held AS (
  SELECT id FROM deliveries WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
), ended AS (
  UPDATE deliveries d SET
    status = o.status,
    lease_until = NULL,
    attempt_count = CASE WHEN o.number > 0 THEN o.number ELSE d.attempt_count END,
    last_attempt_at = CASE WHEN o.number > 0 THEN o.started_at ELSE d.last_attempt_at END,
    duration_ms = CASE WHEN o.number > 0 THEN o.duration_ms ELSE d.duration_ms END,
    last_response_status = CASE WHEN o.number > 0 THEN nullif(o.response, 0) ELSE d.last_response_status END,
    last_error = nullif(o.error, ''),
    delivered_at = CASE WHEN o.status = 'succeeded' THEN now() END,
    failed_at = CASE WHEN o.status = 'failed' THEN now() END,
    next_attempt_at = CASE WHEN o.status = 'pending' THEN now() + make_interval(secs => o.retry) END
  FROM o JOIN held ON held.id = o.id
  WHERE d.id = o.id AND d.status = 'pending' AND d.lease_until = o.lease AND (o.number = 0 OR d.attempt_count = o.number - 1)
  RETURNING o.attempt_id, o.place, o.counts, o.error = '' AS success, d.organization_id, d.webhook_id
), attempted AS (
  INSERT INTO attempts (id, organization_id, delivery_id, number, started_at, duration_ms, response_status, response_body, error)
  SELECT o.attempt_id, e.organization_id, o.id, o.number, o.started_at, o.duration_ms, nullif(o.response, 0), o.body, nullif(o.error, '')
  FROM o JOIN ended e ON e.attempt_id = o.attempt_id
  WHERE o.number > 0
), streak AS (
  SELECT webhook_id, bool_or(success) AS broken, count(*) FILTER (WHERE counts AND place > coalesce(last_success, 0)) AS failures
  FROM (SELECT *, max(place) FILTER (WHERE success) OVER (PARTITION BY webhook_id) AS last_success FROM ended) e
  GROUP BY webhook_id
), locked AS (
  SELECT h.id, h.consecutive_failures AS had
  FROM webhooks h JOIN streak s ON s.webhook_id = h.id
  WHERE h.deleted_at IS NULL AND (s.failures > 0 OR (s.broken AND h.consecutive_failures > 0))
  ORDER BY h.id FOR NO KEY UPDATE OF h
), counted AS (
  UPDATE webhooks h SET consecutive_failures = CASE WHEN s.broken THEN 0 ELSE l.had END + s.failures
  FROM locked l JOIN streak s ON s.webhook_id = l.id
  WHERE h.id = l.id
  RETURNING h.id
)
SELECT e.place FROM ended e JOIN counted c ON c.id = e.webhook_id`

// Record writes outcomes in one statement, and returns for each whether it moved its
// webhook's streak. Of several results of one delivery, one counts. A result changes nothing if
//   - its attempt is already recorded,
//   - its delivery has ended, or
//   - another worker has claimed the delivery since.
func Record(ctx context.Context, s *postgres.DB, results []Result) (moved []bool, err error) {
	n := len(results)
	ids, attempts, numbers := make([]string, n), make([]string, n), make([]int, n)
	started, durations, responses := make([]time.Time, n), make([]int, n), make([]int, n)
	bodies, failures, states, retries := make([][]byte, n), make([]string, n), make([]string, n), make([]float64, n)
	counts, leases := make([]bool, n), make([]time.Time, n)
	for i, r := range results {
		ids[i], attempts[i] = r.ID.UUID().String(), publicid.NewAttempt().UUID().String()
		numbers[i], started[i], durations[i] = r.Number, r.StartedAt, int(r.Duration.Milliseconds())
		responses[i], bodies[i], failures[i], states[i] = r.Response, r.Body, r.Error, r.status()
		counts[i], leases[i] = r.Counts, r.Lease
		if r.Retry != nil {
			retries[i] = r.Retry.Seconds()
		}
	}
	var places []int
	err = postgres.Again(func() error {
		rows, err := s.Across(ofAll).Query(ctx, recordSQL, ids, attempts, numbers, started, durations, responses, bodies, failures, states,
			retries, counts, leases)
		if err != nil {
			return err
		}
		places, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	if err != nil {
		return nil, errors.Wrap(err, "record attempts")
	}
	moved = make([]bool, n)
	for _, place := range places {
		moved[place-1] = true
	}
	return moved, nil
}

// An attempt that is under way keeps its lease, here and in reviveSQL. A run that revives the
// delivery meanwhile can therefore not start a second attempt beside it.
const endSQL = `
WITH held AS (
  SELECT d.id FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
  WHERE d.id = ANY ($1::uuid[]) AND h.deleted_at IS NULL ORDER BY d.id FOR NO KEY UPDATE OF d
)
UPDATE deliveries d
SET status = 'failed', failed_at = now(), last_error = $2, next_attempt_at = NULL,
  workflow_run_id = coalesce(nullif($3, ''), d.workflow_run_id)
FROM held WHERE d.id = held.id AND d.status = 'pending'`

// End fails the pending ones of the deliveries, without an attempt and for the given
// reason. It returns how many it failed. Run is the workflow run that ends them, or empty.
func End(ctx context.Context, s *postgres.DB, run, reason string, deliveries []publicid.Delivery) (int, error) {
	var ended int64
	err := s.OnDeliveries(ctx, func() error {
		done, err := s.Across(ofAll).Exec(ctx, endSQL, Texts(deliveries), reason, run)
		ended = done.RowsAffected()
		return err
	})
	if err != nil {
		return 0, errors.Wrap(err, "end deliveries")
	}
	return int(ended), nil
}

const reviveSQL = `
WITH held AS (
  SELECT id FROM deliveries WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
)
UPDATE deliveries d
SET status = 'pending', failed_at = NULL, schedule_start = d.attempt_count, next_attempt_at = now()
FROM held WHERE d.id = held.id AND d.status = 'failed' AND d.workflow_run_id IS DISTINCT FROM $2`

const pendingSQL = `
SELECT d.id, d.webhook_id, d.attempt_count FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
WHERE d.id = ANY ($1::uuid[]) AND d.status = 'pending' AND h.deleted_at IS NULL ORDER BY d.id`

// Revived is a pending delivery that Revive returns.
type Revived struct {
	ID       publicid.Delivery
	Webhook  publicid.Webhook
	Attempts int
}

// Revive makes failed deliveries pending again and restarts their schedule, unless they
// failed in this run. It returns all of the deliveries that are pending, so a repeated call returns
// the same until an attempt is made.
func Revive(ctx context.Context, s *postgres.DB, run string, deliveries []publicid.Delivery) ([]Revived, error) {
	ids := Texts(deliveries)
	if err := s.OnDeliveries(ctx, func() error {
		_, err := s.Across(ofAll).Exec(ctx, reviveSQL, ids, run)
		return err
	}); err != nil {
		return nil, errors.Wrap(err, "revive deliveries")
	}
	rows, err := s.Across(ofAll).Query(ctx, pendingSQL, ids)
	if err != nil {
		return nil, errors.Wrap(err, "read revived deliveries")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Revived, err error) {
		return r, row.Scan(&r.ID, &r.Webhook, &r.Attempts)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read revived deliveries")
	}
	return found, nil
}

// Texts returns ids as text, for arrays of statements that pgx describes first.
func Texts[ID interface{ UUID() uuid.UUID }](ids []ID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.UUID().String()
	}
	return texts
}
