package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// This file is the delivery's own path to its rows, by hand-written SQL in
// batches and past Ent: it is the hottest one, and it belongs to the deliverer,
// not to a caller. It touches only the rows whose ids it is given, of any
// organization; the ids come from the outbox and never from a request.

// Claim asks for one attempt of a delivery.
type Claim struct {
	ID publicid.Delivery
	// Number of the attempt, from 1.
	Number int
	// WorkflowID is the run that will answer for the delivery.
	WorkflowID string
	// Lease is how long nobody else may make an attempt.
	Lease time.Duration
}

// Claimed is the answer to a Claim. Exactly one of Gone, Granted and Wait holds.
type Claimed struct {
	// Gone: the delivery has ended, or its row is no longer there.
	Gone bool
	// Granted: make the attempt, with what follows below.
	Granted bool
	// Wait: not now. Attempt is the number to ask for after Delay.
	Wait    bool
	Attempt int
	Delay   time.Duration

	Webhook   publicid.Webhook
	URL       string
	Enabled   bool
	Sealed    []byte
	EventType string
	Payload   []byte
}

// Rows are taken in the order of their ids, here and in recordSQL, so that
// batches that overlap wait for each other, but never in a circle. What held
// shows is the row after such a wait.
const claimSQL = `
WITH wanted AS (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::float8[]) WITH ORDINALITY
    AS w(id, number, workflow_id, lease, place)
), held AS (
  SELECT id, status = 'pending' AS pending, attempt_count, next_attempt_at, lease_until
  FROM deliveries WHERE id = ANY ($1::uuid[])
  ORDER BY id FOR NO KEY UPDATE
), claimed AS (
  UPDATE deliveries d
  SET lease_until = now() + make_interval(secs => w.lease), workflow_id = w.workflow_id
  FROM wanted w JOIN held r ON r.id = w.id
  WHERE d.id = w.id AND r.pending AND r.attempt_count = w.number - 1
    AND (r.lease_until IS NULL OR r.lease_until <= now())
  RETURNING w.place, d.webhook_id, d.event_id
)
SELECT w.place, r.pending, r.attempt_count,
  coalesce(extract(epoch FROM r.next_attempt_at - now()), 0)::float8,
  CASE WHEN r.lease_until > now() THEN extract(epoch FROM r.lease_until - now()) ELSE w.lease END::float8,
  c.webhook_id, h.url, h.enabled, h.secret_sealed, e.type, e.payload
FROM wanted w
JOIN held r ON r.id = w.id
LEFT JOIN claimed c ON c.place = w.place
LEFT JOIN webhooks h ON h.id = c.webhook_id
LEFT JOIN events e ON e.id = c.event_id`

// ClaimDeliveries decides for each claim, in one statement, whether its attempt
// may be made. Answers are in the order of the claims; of several claims of one
// delivery one is granted.
func (s *Store) ClaimDeliveries(ctx context.Context, claims []Claim) ([]Claimed, error) {
	ids, numbers := make([]string, len(claims)), make([]int, len(claims))
	workflows, leases := make([]string, len(claims)), make([]float64, len(claims))
	for i, c := range claims {
		ids[i], numbers[i] = c.ID.UUID().String(), c.Number
		workflows[i], leases[i] = c.WorkflowID, c.Lease.Seconds()
	}
	var out []Claimed
	err := again(func() (err error) {
		out, err = s.claim(ctx, claims, ids, numbers, workflows, leases)
		return err
	})
	return out, err
}

func (s *Store) claim(ctx context.Context, claims []Claim, args ...any) ([]Claimed, error) {
	rows, err := s.pool.Query(ctx, claimSQL, args...)
	if err != nil {
		return nil, errors.Wrap(err, "claim deliveries")
	}
	defer rows.Close()
	out := make([]Claimed, len(claims))
	for i := range out {
		out[i].Gone = true // unless its row is found
	}
	for rows.Next() {
		var r claimRow
		if err := r.scan(rows); err != nil {
			return nil, errors.Wrap(err, "read a claim")
		}
		out[r.place-1] = r.answer(claims[r.place-1])
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "claim deliveries")
	}
	return out, nil
}

type claimRow struct {
	place      int // of the claim, from 1
	pending    bool
	attempts   int
	due, lease float64
	webhook    *publicid.Webhook
	url, event *string
	enabled    *bool
	sealed     []byte
	payload    []byte
}

func (r *claimRow) scan(rows pgx.Rows) error {
	return rows.Scan(&r.place, &r.pending, &r.attempts, &r.due, &r.lease,
		&r.webhook, &r.url, &r.enabled, &r.sealed, &r.event, &r.payload)
}

func (r *claimRow) answer(c Claim) Claimed {
	switch {
	case !r.pending:
		return Claimed{Gone: true}
	case r.url != nil:
		return Claimed{
			Granted: true, Attempt: c.Number, Webhook: *r.webhook, URL: *r.url, Enabled: *r.enabled,
			Sealed: r.sealed, EventType: *r.event, Payload: r.payload,
		}
	case r.attempts != c.Number-1:
		// The row knows better than the run, after a reset for example.
		return Claimed{Wait: true, Attempt: r.attempts + 1, Delay: seconds(r.due)}
	default:
		// Somebody's attempt is in flight, or was when they were killed.
		return Claimed{Wait: true, Attempt: c.Number, Delay: seconds(r.lease)}
	}
}

func seconds(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }

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

const recordSQL = `
WITH o AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::timestamptz[], $5::int[], $6::int[], $7::bytea[], $8::text[], $9::text[], $10::float8[])
    AS o(id, attempt_id, number, started_at, duration_ms, response, body, error, status, retry)
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
  WHERE d.id = o.id AND d.status = 'pending' AND (o.number = 0 OR d.attempt_count = o.number - 1)
  RETURNING o.attempt_id, d.organization_id
)
INSERT INTO attempts (id, organization_id, delivery_id, number, started_at, duration_ms, response_status, response_body, error)
SELECT o.attempt_id, e.organization_id, o.id, o.number, o.started_at, o.duration_ms, nullif(o.response, 0), o.body, nullif(o.error, '')
FROM o JOIN ended e ON e.attempt_id = o.attempt_id
WHERE o.number > 0`

// RecordResults writes outcomes, in one statement. A result whose attempt is
// recorded already, or whose delivery has ended, changes nothing; of several
// results of one delivery one counts.
func (s *Store) RecordResults(ctx context.Context, results []Result) error {
	n := len(results)
	ids, attempts, numbers := make([]string, n), make([]string, n), make([]int, n)
	started, durations, responses := make([]time.Time, n), make([]int, n), make([]int, n)
	bodies, failures, states, retries := make([][]byte, n), make([]string, n), make([]string, n), make([]float64, n)
	for i, r := range results {
		ids[i], attempts[i] = r.ID.UUID().String(), publicid.NewAttempt().UUID().String()
		numbers[i], started[i], durations[i] = r.Number, r.StartedAt, int(r.Duration.Milliseconds())
		responses[i], bodies[i], failures[i], states[i] = r.Response, r.Body, r.Error, r.status()
		if r.Retry != nil {
			retries[i] = r.Retry.Seconds()
		}
	}
	err := again(func() error {
		_, err := s.pool.Exec(ctx, recordSQL, ids, attempts, numbers, started, durations, responses, bodies, failures, states, retries)
		return err
	})
	if err != nil {
		return errors.Wrap(err, "record attempts")
	}
	return nil
}

// Overdue is a pending delivery whose attempt should have been made long ago.
type Overdue struct {
	ID           publicid.Delivery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	EventType    string
	URL          string
	// WorkflowID is empty when no workflow ever took the delivery on.
	WorkflowID string
	DueAt      time.Time
}

const overdueSQL = `
SELECT d.id, d.webhook_id, d.organization_id, d.event_type, h.url, coalesce(d.workflow_id, ''), d.next_attempt_at
FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
WHERE d.status = 'pending' AND d.next_attempt_at < now() - make_interval(secs => $1)
  AND (d.lease_until IS NULL OR d.lease_until < now())
  AND (d.next_attempt_at, d.id) > ($2, $3::uuid)
ORDER BY d.next_attempt_at, d.id
LIMIT $4`

// OverdueDeliveries reads the outbox's forgotten rows in the order they were
// due: those that are overdue by more than grace and come after the last row of
// the page before (the zero Overdue to begin with), at most limit of them.
func (s *Store) OverdueDeliveries(ctx context.Context, grace time.Duration, last Overdue, limit int) ([]Overdue, error) {
	rows, err := s.pool.Query(ctx, overdueSQL, grace.Seconds(), last.DueAt, last.ID.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "look for overdue deliveries")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overdue, err error) {
		err = row.Scan(&o.ID, &o.Webhook, &o.Organization, &o.EventType, &o.URL, &o.WorkflowID, &o.DueAt)
		return o, err
	})
	if err != nil {
		return nil, errors.Wrap(err, "read overdue deliveries")
	}
	return found, nil
}
