package check

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Tolerances for comparing times, and durations for which a kill has effects.
const (
	// attemptTimeout is the service's timeout of an attempt. The service doesn't wait for older
	// requests.
	attemptTimeout = 10 * time.Second
	// recordTime is the service's time for recording an outcome. The lease of a delivery ends this
	// much after the attempt's timeout.
	recordTime = 2 * time.Second
	// dying is how long after the noted time a killed process may still be heard. The harness notes
	// the time before the kill, earlier requests may lie in a socket, and a busy machine delays the
	// receiver.
	dying = 2 * time.Second
	// claimed is how long after the loss of Postgres an attempt may begin, if its claim came before.
	// New claims need Postgres, and the request follows its claim immediately.
	claimed = time.Second
	// heartbeat is an activity's heartbeat timeout. An activity that Temporal gave up during its
	// outage learns of it with its next heartbeat.
	heartbeat = 12 * time.Second
	// settling: a statement delayed by an outage ends within its timeout of 5 s. Until then, its
	// transaction is in flight.
	settling = 5 * time.Second
	// doubt is the uncertainty about the time of a change to a webhook. A webhook and an event are
	// stamped before their transactions commit, and an event looks for webhooks before its commit.
	// Transactions take milliseconds.
	doubt = time.Second
	// slack is the tolerance between a request's arrival and its attempt. Durations are in whole
	// milliseconds of a steady clock, while the machine's clock was seen to step by 12 ms during an
	// attempt. The next attempt is a second away.
	slack = 100 * time.Millisecond
	// lateness is the delay of a request whose client has given up, on a busy machine.
	lateness = 5 * time.Second
)

// A deleted webhook and its log are invisible to every client, although a job removes the rows page
// by page later. The names in the rules refer to these views.
const livingSQL = `
CREATE TEMP VIEW attempts AS SELECT a.* FROM public.attempts a JOIN public.deliveries d ON d.id = a.delivery_id
  JOIN public.webhooks h ON h.id = d.webhook_id WHERE h.deleted_at IS NULL;
CREATE TEMP VIEW deliveries AS SELECT d.* FROM public.deliveries d JOIN public.webhooks h ON h.id = d.webhook_id WHERE h.deleted_at IS NULL;
CREATE TEMP VIEW webhooks AS SELECT * FROM public.webhooks WHERE deleted_at IS NULL`

// An outage lasts from at to over. If a process died, both are the same moment; otherwise the
// outage is the time that its target was away. Until settled, it may affect a transaction.
//
// It may leave attempts without a record, if their request arrived up to until:
//   - A worker that died, or lost its database, may leave the attempts that were in flight. No
//     other attempt begins, because a claim needs Postgres.
//   - Without Temporal, attempts go on and are recorded. But an activity is cancelled if its
//     heartbeats fail or Temporal gave it up, and its unanswered requests are cut off. An answer
//     that arrived is recorded.
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

// An event between must_since and must_until has a delivery. An event before may_since or after
// may_until has none. In between, and for webhooks changed since, the rows don't tell. An outage
// may delay the transaction of either.
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

// settled is the latest time at which a transaction stamped with the moment has committed.
const settledSQL = `
CREATE FUNCTION pg_temp.settled(moment timestamptz, doubt interval) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT greatest(moment + doubt, max(settled)) FROM outages WHERE at <= moment + doubt AND settled >= moment - doubt
$$`

// unsettled is the reverse: a transaction stamped before the result had committed before the
// moment.
const unsettledSQL = `
CREATE FUNCTION pg_temp.unsettled(moment timestamptz, doubt interval) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT least(moment, min(at)) - doubt FROM outages WHERE at <= moment + doubt AND settled >= moment - doubt
$$`

// A request belongs to the attempt during which it arrived. If several arrived during one attempt,
// one of them belongs to it, preferably one with the recorded answer. All other requests have no
// attempt: either the record was lost, or they should never have been made.
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

// recorded is when the attempt's outcome was in the database, or the latest time at which it would
// have been. The column again is the arrival of the delivery's next request, and known reports
// whether the delivery has a row. in_flight reports whether an outage between arrival and record
// may have interrupted the request.
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

// prepare builds the tables and views that the rules read.
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
