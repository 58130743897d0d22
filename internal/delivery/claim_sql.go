// Package delivery has the rows of deliveries, as the worker reads and writes them: the claim of an
// attempt, its record, the wait for a free slot, the throttle of a webhook, and overdue deliveries. The
// use cases of customers are in internal/webhooks.
package delivery

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// ofAll is the reason why the statements of this package touch rows of all organizations.
const ofAll = "a worker makes the attempts of all organizations"

// This file and record.go contain the delivery path: hand-written SQL in batches that bypasses Ent,
// because this path is the hottest one. Its caller is the deliverer. It touches only the rows with
// the given ids, of any organization. The ids come from the outbox, never from a request.

// Claim asks for one attempt of a delivery.
type Claim struct {
	ID publicid.Delivery
	// Number of the attempt, from 1.
	Number int
	// WorkflowID and RunID identify the run that is responsible for the delivery.
	WorkflowID, RunID string
	// Lease is the time during which no other attempt may be made.
	Lease time.Duration
	// Token reports that the attempt has a token of its webhook's throttle (TakeWebhookTokens).
	Token bool
}

// Claimed is the answer to a Claim. Exactly one of Gone, Granted, Throttled and Wait is set.
type Claimed struct {
	// Gone: the delivery has ended, its webhook was deleted, or its row no longer exists.
	Gone bool
	// Ended is the outcome of a delivery that is gone and still has a row.
	Ended *Ended
	// Granted: make the attempt with the fields below.
	Granted bool
	// Throttled: the webhook has a throttle and the claim has no token. A caller that asked for a
	// token has to ask again after Delay. Noted is WebhookToken.Noted.
	Throttled, Noted bool
	// Wait: claim attempt number Attempt after Delay.
	Wait    bool
	Attempt int
	Delay   time.Duration

	Webhook publicid.Webhook
	URL     string
	// SealedURL is empty in a row that was written before URLs were sealed; URL is then complete.
	// Otherwise URL contains only the beginning.
	SealedURL []byte
	Enabled   bool
	Sealed    []byte
	// SealedFormer is the previous secret during a rotation.
	SealedFormer []byte
	EventType    string
	Payload      []byte
	// Sequence is the event's number within its organization, or 0 without a number.
	Sequence int64
	// Lease is the end of the lease. It also identifies the claim: the result of the attempt has to
	// contain it.
	Lease time.Time
	// Age is the time since the delivery was created. PutOff reports that the attempt was due later
	// than the creation, for example because it was postponed.
	Age    time.Duration
	PutOff bool
	// ScheduleStart is the number of attempts before the current schedule began. It is 0 unless the
	// schedule was restarted.
	ScheduleStart int
}

// Ended is the outcome of a delivery.
type Ended struct {
	Failed bool
	// Attempts is the number of attempts. Response is the status of the last one, or 0 without a
	// response, and Error is its error.
	Attempts int
	Response int
	Error    string
}

// Rows are locked in the order of their ids, here and in recordSQL, so that overlapping batches
// can't deadlock. The CTE held reads each row as it is after the wait for its lock.
const claimSQL = `
WITH wanted AS (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::float8[], $6::bool[]) WITH ORDINALITY
    AS w(id, number, workflow_id, run_id, lease, token, place)
), held AS (
  SELECT d.id, d.status, d.attempt_count, d.schedule_start, d.created_at, d.next_attempt_at, d.lease_until,
    coalesce(d.last_response_status, 0) AS response, coalesce(d.last_error, '') AS error,
    h.url, h.url_sealed, h.enabled, h.secret_sealed, h.enabled AND h.max_per_second IS NOT NULL AS throttled,
    CASE WHEN h.former_secret_until > now() THEN h.former_secret_sealed END AS former_secret_sealed
  FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
  WHERE d.id = ANY ($1::uuid[]) AND h.deleted_at IS NULL
  ORDER BY d.id FOR NO KEY UPDATE OF d
), claimed AS (
  UPDATE deliveries d
  SET lease_until = now() + make_interval(secs => w.lease), workflow_id = w.workflow_id, workflow_run_id = w.run_id
  FROM wanted w JOIN held r ON r.id = w.id
  WHERE d.id = w.id AND r.status = 'pending' AND r.attempt_count = w.number - 1
    AND (r.lease_until IS NULL OR r.lease_until <= now()) AND (w.token OR NOT r.throttled)
  RETURNING w.place, d.webhook_id, d.event_id, d.lease_until
)
SELECT w.place, r.status, r.attempt_count, r.schedule_start, r.response, r.error,
  coalesce(extract(epoch FROM r.next_attempt_at - now()), 0)::float8,
  CASE WHEN r.lease_until > now() THEN extract(epoch FROM r.lease_until - now()) ELSE w.lease END::float8,
  extract(epoch FROM clock_timestamp() - r.created_at)::float8, coalesce(r.next_attempt_at > r.created_at, false),
  r.throttled AND NOT w.token AND (r.lease_until IS NULL OR r.lease_until <= now()),
  c.webhook_id, r.url, r.url_sealed, r.enabled, r.secret_sealed, r.former_secret_sealed, e.type, e.payload, coalesce(e.sequence, 0), c.lease_until
FROM wanted w
JOIN held r ON r.id = w.id
LEFT JOIN claimed c ON c.place = w.place
LEFT JOIN events e ON e.id = c.event_id`

// ClaimAll decides for each claim, in one statement, whether its attempt may be made.
// Answers are in the order of the claims. Of several claims of one delivery, it grants one.
func ClaimAll(ctx context.Context, s *postgres.DB, claims []Claim) ([]Claimed, error) {
	ids, numbers := make([]string, len(claims)), make([]int, len(claims))
	workflows, runs, leases := make([]string, len(claims)), make([]string, len(claims)), make([]float64, len(claims))
	tokens := make([]bool, len(claims))
	for i, c := range claims {
		ids[i], numbers[i] = c.ID.UUID().String(), c.Number
		workflows[i], runs[i], leases[i], tokens[i] = c.WorkflowID, c.RunID, c.Lease.Seconds(), c.Token
	}
	var out []Claimed
	err := postgres.Again(func() (err error) {
		out, err = claim(ctx, s, claims, ids, numbers, workflows, runs, leases, tokens)
		return err
	})
	return out, err
}

func claim(ctx context.Context, s *postgres.DB, claims []Claim, args ...any) ([]Claimed, error) {
	rows, err := s.Across(ofAll).Query(ctx, claimSQL, args...)
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
	place      int // the claim's position, from 1
	status     string
	attempts   int
	start      int
	response   int
	failure    string
	due, lease float64
	age        float64
	putOff     bool
	throttled  bool // only a token is missing
	webhook    *publicid.Webhook
	url        string
	event      *string
	enabled    bool
	sealedURL  []byte
	sealed     []byte
	former     []byte
	payload    []byte
	sequence   int64
	leased     *time.Time
}

func (r *claimRow) scan(rows pgx.Rows) error {
	return rows.Scan(&r.place, &r.status, &r.attempts, &r.start, &r.response, &r.failure, &r.due, &r.lease, &r.age, &r.putOff,
		&r.throttled, &r.webhook, &r.url, &r.sealedURL, &r.enabled, &r.sealed, &r.former, &r.event, &r.payload, &r.sequence, &r.leased)
}

func (r *claimRow) answer(c Claim) Claimed {
	switch {
	case r.status != "pending":
		return Claimed{Gone: true, Ended: &Ended{
			Failed: r.status == "failed", Attempts: r.attempts, Response: r.response, Error: r.failure,
		}}
	case r.webhook != nil:
		return Claimed{
			Granted: true, Attempt: c.Number, Webhook: *r.webhook, URL: r.url, SealedURL: r.sealedURL, Enabled: r.enabled,
			Sealed: r.sealed, SealedFormer: r.former, EventType: *r.event, Payload: r.payload, Sequence: r.sequence, ScheduleStart: r.start,
			Lease: *r.leased, Age: seconds(r.age), PutOff: r.putOff,
		}
	case r.attempts != c.Number-1:
		// The row is more recent than the run, for example after a reset.
		return Claimed{Wait: true, Attempt: r.attempts + 1, Delay: seconds(r.due)}
	case r.throttled:
		return Claimed{Throttled: true}
	default:
		// Another attempt has the lease. It is in flight, or its worker was killed.
		return Claimed{Wait: true, Attempt: c.Number, Delay: seconds(r.lease)}
	}
}

func seconds(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }
