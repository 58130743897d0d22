package delivery

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file has the token buckets of webhooks with a throttle, in hand-written SQL as in
// ratelimits.go. All processes share them. The webhooks are those of deliveries that are being
// claimed, of any organization.
//
// A bucket holds the tokens of one second. Its state is two times by the database's clock: the time
// at which it is full again, and the last turn in line. Buckets have their own table, so a slow
// change of a webhook does not delay tokens.

// WebhookTokenAsk asks for a token for one attempt of a delivery.
type WebhookTokenAsk struct {
	Webhook  publicid.Webhook
	Delivery publicid.Delivery
	// Number of the attempt, from 1.
	Number int
	// WorkflowID and RunID identify the run that is responsible for the delivery.
	WorkflowID, RunID string
	// Later is true for an attempt that has waited or is a retry. It does not stand in line behind
	// others, unlike a first attempt.
	Later bool
}

// WebhookToken is the answer to a WebhookTokenAsk.
type WebhookToken struct {
	// Granted is true if the attempt may begin after Wait. Otherwise the delivery's turn comes after
	// Wait, and it has to ask again then.
	Granted bool
	Wait    time.Duration
	// Noted is true if the delivery's row has the turn and the run that is responsible for it.
	Noted bool
	// Crowded is true if there is neither a token nor a turn, because the line is too long.
	Crowded bool
}

// A delivery without a token gets a turn: a place in line, and the time at which it asks again. The
// statement adds a turn to the line and to the delivery's row together. A delivery that asks again
// before its turn keeps it, for example after its process was killed. Abandoned turns therefore
// never make the line longer. If the delivery's row is locked, the statement does not wait for it and
// does not note the turn.
//
// The other deliveries get tokens in this order: later attempts first, then first attempts, and
// older deliveries before younger ones. The nth gets its token when n tokens have flowed into the
// bucket on top of its deficit. A full bucket has the tokens of one second immediately.
//
// A delivery that would wait longer than $7 seconds for its token goes to the end of the line. Turns
// are as far apart as tokens, and reach at most $8 seconds ahead. A change of the limit begins a new
// line.
const throttleSQL = `
WITH asked AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::bool[]) WITH ORDINALITY
    AS a(webhook_id, delivery_id, number, workflow_id, run_id, later, place)
), held AS (
  SELECT t.webhook_id, h.max_per_second AS most, h.max_per_second::float8 AS rate, t.full_at,
    CASE WHEN t.max_per_second = h.max_per_second THEN t.line_until END AS line_until
  FROM webhook_throttles t JOIN webhooks h ON h.id = t.webhook_id
  WHERE t.webhook_id = ANY ($1::uuid[]) AND h.max_per_second IS NOT NULL AND h.deleted_at IS NULL
  ORDER BY t.webhook_id FOR NO KEY UPDATE OF t
), found AS MATERIALIZED (
  SELECT *, clock_timestamp() AS at FROM held
), bucket AS (
  SELECT *, extract(epoch FROM greatest(full_at, at) - at)::float8 AS lacking,
    extract(epoch FROM greatest(line_until, at) - at)::float8 AS line
  FROM found
), known AS (
  SELECT b.*, a.place, a.delivery_id, a.number, a.workflow_id, a.run_id,
    a.later OR coalesce(d.next_attempt_at > d.created_at, false) AS later,
    CASE WHEN d.next_attempt_at > b.at AND d.next_attempt_at <= b.line_until THEN d.next_attempt_at END AS kept
  FROM asked a JOIN bucket b USING (webhook_id)
  LEFT JOIN deliveries d ON d.id = a.delivery_id AND d.attempt_count = a.number - 1
), ordered AS (
  SELECT *, row_number() OVER (PARTITION BY webhook_id, kept IS NULL ORDER BY later DESC, delivery_id, place) AS n FROM known
), decided AS (
  SELECT *, greatest(0, lacking + n / rate - 1) AS wait,
    kept IS NULL AND (later OR line = 0) AND lacking + n / rate - 1 <= $7 AS granted
  FROM ordered
), counted AS (
  SELECT *, count(*) FILTER (WHERE granted) OVER (PARTITION BY webhook_id) AS grants FROM decided
), placed AS (
  SELECT *, coalesce(kept, at + make_interval(secs => greatest(line, lacking + grants / rate - 1) + (n - grants) / rate)) AS turn
  FROM counted
), answers AS (
  SELECT *, NOT granted AND turn > at + make_interval(secs => $8) AS crowded FROM placed
), taken AS (
  UPDATE webhook_throttles t SET max_per_second = a.most, full_at = a.full_at, line_until = a.line_until
  FROM (
    SELECT webhook_id, most, max(at + make_interval(secs => lacking + grants / rate)) AS full_at,
      max(CASE WHEN granted OR crowded THEN greatest(line_until, at) ELSE greatest(line_until, turn) END) AS line_until
    FROM answers GROUP BY webhook_id, most
  ) a
  WHERE t.webhook_id = a.webhook_id
), free AS (
  SELECT d.id FROM deliveries d JOIN answers a ON a.delivery_id = d.id
  WHERE NOT a.granted AND NOT a.crowded AND d.status = 'pending' AND d.attempt_count = a.number - 1
    AND (d.lease_until IS NULL OR d.lease_until <= now())
  FOR NO KEY UPDATE OF d SKIP LOCKED
), noted AS (
  UPDATE deliveries d SET next_attempt_at = a.turn, workflow_id = a.workflow_id, workflow_run_id = a.run_id
  FROM answers a JOIN free ON free.id = a.delivery_id
  WHERE d.id = a.delivery_id
  RETURNING a.place
)
SELECT place, granted, CASE WHEN granted THEN wait ELSE extract(epoch FROM turn - at) END::float8,
  place IN (SELECT place FROM noted), crowded
FROM answers`

// A bucket without a row is full.
const fullThrottlesSQL = `
INSERT INTO webhook_throttles (webhook_id)
SELECT id FROM webhooks WHERE id = ANY ($1::uuid[]) AND max_per_second IS NOT NULL AND deleted_at IS NULL ORDER BY id
ON CONFLICT DO NOTHING`

// TakeWebhookTokens asks for tokens that are available within a time, or for turns within a longer
// time ahead. Answers are in the order of the asks. A webhook that is deleted or no longer has a
// throttle grants every token.
func TakeWebhookTokens(ctx context.Context, s *postgres.DB, within, ahead time.Duration, asks []WebhookTokenAsk) ([]WebhookToken, error) {
	var tokens []WebhookToken
	err := postgres.Again(func() (err error) {
		tokens, err = takeWebhookTokens(ctx, s, within, ahead, asks)
		return err
	})
	if err != nil {
		return nil, errors.Wrap(err, "take tokens of webhooks")
	}
	return tokens, nil
}

// takeWebhookTokens creates missing buckets and takes tokens, in one round trip.
func takeWebhookTokens(ctx context.Context, s *postgres.DB, within, ahead time.Duration, asks []WebhookTokenAsk) ([]WebhookToken, error) {
	webhooks, deliveries := make([]string, len(asks)), make([]string, len(asks))
	numbers, later := make([]int, len(asks)), make([]bool, len(asks))
	workflows, runs := make([]string, len(asks)), make([]string, len(asks))
	tokens := make([]WebhookToken, len(asks))
	for i, a := range asks {
		webhooks[i], deliveries[i], numbers[i] = a.Webhook.UUID().String(), a.Delivery.UUID().String(), a.Number
		workflows[i], runs[i], later[i] = a.WorkflowID, a.RunID, a.Later
		tokens[i].Granted = true
	}
	var both pgx.Batch
	both.Queue(fullThrottlesSQL, webhooks)
	take := both.Queue(throttleSQL, webhooks, deliveries, numbers, workflows, runs, later, within.Seconds(), ahead.Seconds())
	take.Query(func(rows pgx.Rows) error {
		var place int
		var wait float64
		var t WebhookToken
		_, err := pgx.ForEachRow(rows, []any{&place, &t.Granted, &wait, &t.Noted, &t.Crowded}, func() error {
			t.Wait = seconds(wait)
			tokens[place-1] = t
			return nil
		})
		return err
	})
	return tokens, s.Across(ofAll).SendBatch(ctx, &both)
}

const removeThrottlesSQL = `
DELETE FROM webhook_throttles WHERE webhook_id IN (
  SELECT webhook_id FROM webhook_throttles t
  WHERE NOT EXISTS (SELECT FROM webhooks h WHERE h.id = t.webhook_id AND h.max_per_second IS NOT NULL AND h.deleted_at IS NULL)
  FOR UPDATE OF t SKIP LOCKED)`

// RemoveThrottles removes the buckets of webhooks that are deleted or no longer have a throttle.
func RemoveThrottles(ctx context.Context, s *postgres.DB) error {
	if _, err := s.Across(ofAll).Exec(ctx, removeThrottlesSQL); err != nil {
		return errors.Wrap(err, "remove buckets of webhooks")
	}
	return nil
}
