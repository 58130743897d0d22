package check

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// How exactly moments can be compared, and how long what a kill meets goes on.
const (
	// attemptTimeout is the service's time for an attempt: a request that arrived
	// longer ago isn't waited for any more.
	attemptTimeout = 10 * time.Second
	// recordTime is what the service allows itself to record an outcome: its lease of a
	// delivery ends so much after the attempt's time.
	recordTime = 2 * time.Second
	// dying is how long after the moment that the harness notes a killed process may
	// still be heard of: the kill comes after the note, what was sent before lies in a
	// socket, and a busy machine lets the receiver wait for its turn.
	dying = 2 * time.Second
	// claimed is how long after Postgres is gone an attempt may begin that was claimed
	// before: there is no new claim without it, and the request follows at once.
	claimed = time.Second
	// heartbeat is an activity's timeout: what Temporal gave up while it was away hears of
	// that with its next heartbeat.
	heartbeat = 12 * time.Second
	// settling: a statement that an outage held up ends within its timeout of 5 s, and
	// until then what it belongs to is in flight.
	settling = 5 * time.Second
	// doubt about a webhook: it is stamped before its transaction commits, and so is
	// an event, which looked for webhooks before. Transactions take milliseconds.
	doubt = time.Second
	// slack between a request's arrival and its attempt: durations are kept in whole
	// milliseconds and are measured by a steady clock, while the machine's clock was seen to
	// step by 12 ms during an attempt. The next attempt is a second away.
	slack = 100 * time.Millisecond
	// lateness of a request that its client has given up, on a busy machine.
	lateness = 5 * time.Second
)

// A webhook that was deleted is gone for everybody, with its log, though its rows are removed
// page by page later. Names in the rules mean these views.
const livingSQL = `
CREATE TEMP VIEW attempts AS SELECT a.* FROM public.attempts a JOIN public.deliveries d ON d.id = a.delivery_id
  JOIN public.webhooks h ON h.id = d.webhook_id WHERE h.deleted_at IS NULL;
CREATE TEMP VIEW deliveries AS SELECT d.* FROM public.deliveries d JOIN public.webhooks h ON h.id = d.webhook_id WHERE h.deleted_at IS NULL;
CREATE TEMP VIEW webhooks AS SELECT * FROM public.webhooks WHERE deleted_at IS NULL`

// An outage is from at to over: a moment where a process died, and else all the time
// that something was away. Until settled it may show in a transaction.
//
// It may leave attempts without a record, those whose request arrived up to until:
//   - A worker that died, or lost its database, may leave the attempts that were in flight.
//     No other attempt begins, because a claim needs Postgres.
//   - Without Temporal, attempts go on and are recorded. But an activity is cancelled if its
//     heartbeats fail or Temporal gave it up, and its unanswered requests are cut off. An
//     answer that arrived is recorded.
//   - If Postgres takes no connection or has no disk, any statement may fail during the outage.
//   - The API makes no attempts, so an outage of the API excuses no missing record.
const outagesSQL = `
CREATE TEMP TABLE outages ON COMMIT DROP AS
SELECT n, interrupts, at, CASE WHEN process THEN at ELSE back END AS over,
  CASE WHEN process THEN at ELSE back END AS settled, NULL::timestamptz AS until
FROM kills`

const outageTimesSQL = `
UPDATE outages o SET
  settled = settled + CASE WHEN process THEN $1::interval ELSE $2::interval END,
  until = CASE o.interrupts
    WHEN 'worker' THEN o.at + $1::interval
    WHEN 'postgres' THEN o.at + $3::interval
    WHEN 'temporal' THEN over + $4::interval
    WHEN 'connections' THEN over + $2::interval
    WHEN 'disk full' THEN over + $2::interval
  END
FROM kills k WHERE k.n = o.n`

// interrupts: outage o may have left request q without a record.
const interrupts = `(o.at <= q.recorded AND o.until >= q.arrived AND (o.interrupts <> 'temporal' OR q.status IS NULL))`

// An event between must_since and must_until has a delivery, one before may_since or
// after may_until hasn't. In between, and where a webhook was changed since, the rows
// don't tell. An outage may hold up the transaction of either.
const hooksSQL = `
CREATE TEMP TABLE hooks ON COMMIT DROP AS
SELECT id, organization_id, events, enabled,
  coalesce((SELECT name FROM endpoints WHERE webhook = webhooks.id), 'nowhere') AS endpoint, updated_at, disabled_at,
  created_at AS may_since, updated_at AS may_until, created_at AS must_since, updated_at AS must_until
FROM webhooks`

const hookTimesSQL = `
UPDATE hooks SET
  may_since = may_since - $1::interval,
  must_since = pg_temp.settled(CASE WHEN enabled THEN greatest(must_since, updated_at) ELSE must_since END, $1),
  must_until = CASE WHEN enabled THEN 'infinity' ELSE pg_temp.unsettled(disabled_at, $1) END,
  may_until = CASE WHEN enabled THEN 'infinity' ELSE pg_temp.settled(disabled_at, $1) END`

// settled is when a transaction that was stamped with a moment has committed for sure.
const settledSQL = `
CREATE FUNCTION pg_temp.settled(moment timestamptz, doubt interval) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT greatest(moment + doubt, max(settled)) FROM outages WHERE at <= moment + doubt AND settled >= moment - doubt
$$`

// unsettled is the other way round: what was stamped with an earlier moment has committed
// before what was stamped with this one.
const unsettledSQL = `
CREATE FUNCTION pg_temp.unsettled(moment timestamptz, doubt interval) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT least(moment, min(at)) - doubt FROM outages WHERE at <= moment + doubt AND settled >= moment - doubt
$$`

// A request belongs to the attempt during which it arrived. Of several during one
// attempt one belongs to it, by preference the one that was answered as recorded; the
// others have no attempt, as those that arrived during none: their record was lost,
// or they should never have been made.
const requestsSQL = `
INSERT INTO requests
WITH candidates AS (
  SELECT DISTINCT ON (r.request) r.request, r.arrived, r.status, a.id AS attempt, a.response_status
  FROM receipts r JOIN attempts a ON a.delivery_id = r.delivery AND r.arrived >= a.started_at - $1::interval
    AND r.arrived <= a.started_at + a.duration_ms * interval '1 ms'
      + CASE WHEN a.error IN ('timeout', 'connection_reset') THEN $2::interval ELSE $1::interval END
  ORDER BY r.request, a.started_at DESC
), placed AS (
  SELECT request, attempt, row_number() OVER (
    PARTITION BY attempt ORDER BY status IS NOT DISTINCT FROM response_status DESC, arrived) AS place
  FROM candidates
), timed AS (
  SELECT r.*, a.id AS attempt, lead(r.arrived) OVER (PARTITION BY r.delivery ORDER BY r.arrived, r.request) AS again,
    CASE WHEN a.id IS NULL THEN least(r.ended, r.arrived + $3::interval) + $4::interval
    ELSE greatest(r.ended, a.started_at + a.duration_ms * interval '1 ms',
      CASE WHEN a.number = d.attempt_count AND d.last_error IS NOT DISTINCT FROM a.error
        THEN coalesce(d.delivered_at, d.failed_at) END)
    END AS recorded, d.id IS NOT NULL AS known
  FROM receipts r
  LEFT JOIN placed p ON p.request = r.request AND p.place = 1
  LEFT JOIN attempts a ON a.id = p.attempt
  LEFT JOIN deliveries d ON d.id = r.delivery
)
SELECT q.*, EXISTS (SELECT FROM outages o WHERE ` + interrupts + `) FROM timed q`

// recorded is when the attempt's outcome was in the database, or would have been at
// the latest; again is when the delivery's next request arrived; known says that the
// delivery has a row. in_flight says that an outage lies between the arrival and the record
// that may have interrupted it.
const requestsTableSQL = `
CREATE TEMP TABLE requests (
  LIKE receipts, attempt uuid, again timestamptz, recorded timestamptz, known boolean, in_flight boolean
) ON COMMIT DROP`

const talliesSQL = `
CREATE TEMP TABLE tallies ON COMMIT DROP AS
SELECT delivery_id, count(*) AS n, min(number) AS low, max(number) AS high, count(DISTINCT number) AS numbers,
  count(*) FILTER (WHERE error IS NULL) AS successes
FROM attempts GROUP BY delivery_id`

const indexesSQL = `
CREATE INDEX ON requests (delivery);
CREATE INDEX ON requests (attempt);
CREATE INDEX ON requests (arrived);
CREATE INDEX ON tallies (delivery_id);
ANALYZE requests;
ANALYZE tallies;
ANALYZE frozen;
ANALYZE writes`

// prepare works out what the rules look at.
func prepare(ctx context.Context, tx pgx.Tx, _ Input) error {
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{livingSQL, nil},
		{outagesSQL, nil},
		{outageTimesSQL, []any{dying, settling, claimed, heartbeat}},
		{settledSQL, nil},
		{unsettledSQL, nil},
		{hooksSQL, nil},
		{hookTimesSQL, []any{doubt}},
		{`ANALYZE receipts`, nil},
		{requestsTableSQL, nil},
		{requestsSQL, []any{slack, lateness, attemptTimeout, recordTime}},
		{talliesSQL, nil},
		{indexesSQL, nil},
	} {
		if _, err := tx.Exec(ctx, step.sql, step.args...); err != nil {
			return errors.Wrap(err, "prepare the check")
		}
	}
	return nil
}
