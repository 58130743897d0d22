package check

// These rules are about the end of a delivery, and about its row and its attempts.

// Every delivery ends.
const pendingSQL = `
SELECT format('delivery %s of event %s has not ended after %s attempts', id, event_id, attempt_count)
FROM deliveries WHERE status NOT IN ('succeeded', 'failed')`

// A delivery succeeded because the receiver answered 2xx, or had the request in flight at a kill.
const unprovenSQL = `
SELECT format('delivery %s succeeded, and the receiver never answered it with 2xx', d.id)
FROM deliveries d
LEFT JOIN (
  SELECT delivery, bool_or(status BETWEEN 200 AND 299 OR (status IS NULL AND in_flight)) AS answered
  FROM requests GROUP BY delivery
) q ON q.delivery = d.id
WHERE d.status = 'succeeded' AND q.answered IS NOT TRUE`

// A delivery fails permanently only if the receiver was dead.
const failedSQL = `
SELECT format('delivery %s failed with %s, and endpoint %s answers', d.id, coalesce(d.last_error, 'no error'),
  h.endpoint)
FROM deliveries d JOIN hooks h ON h.id = d.webhook_id
WHERE d.status = 'failed' AND h.endpoint NOT IN (SELECT endpoint FROM may_fail)`

// The harness has no operator, so no delivery is given up.
const givenUpSQL = `
SELECT format('delivery %s was given up, and nobody asked for it', id)
FROM deliveries WHERE last_error = 'given_up'`

// A delivery fails after all of its attempts, which count from 0 again after a revival. It needs
// none if its webhook was disabled, or if an operator gave it up.
const earlySQL = `
SELECT format('delivery %s failed with %s after %s attempts, not %s', d.id, coalesce(d.last_error, 'no error'),
  coalesce(t.n, 0), d.schedule_start + terms.max_attempts)
FROM terms CROSS JOIN deliveries d LEFT JOIN tallies t ON t.delivery_id = d.id
WHERE d.status = 'failed' AND coalesce(d.last_error, '') NOT IN ('webhook_disabled', 'given_up')
  AND coalesce(t.n, 0) <> d.schedule_start + terms.max_attempts`

// If a delivery ended because its webhook was disabled, the webhook was disabled at that time,
// unless it was changed since.
const unexplainedSQL = `
SELECT format('delivery %s ended at %s because webhook %s was disabled, which was %s', d.id, d.failed_at, h.id,
  coalesce('disabled at ' || h.disabled_at, 'enabled'))
FROM deliveries d JOIN hooks h ON h.id = d.webhook_id
WHERE d.status = 'failed' AND d.last_error = 'webhook_disabled'
  AND CASE WHEN h.enabled THEN h.updated_at <= d.failed_at ELSE h.disabled_at > d.failed_at END`

// A webhook is disabled only if the receiver was dead, and after enough failed deliveries.
const disabledSQL = `
SELECT format('webhook %s to %s was disabled at %s after %s deliveries that failed for good', id, endpoint,
  disabled_at, n)
FROM terms CROSS JOIN (
  SELECT h.*, (SELECT count(*) FROM deliveries d WHERE d.webhook_id = h.id AND d.status = 'failed'
    AND d.last_error NOT IN ('webhook_disabled', 'given_up') AND d.failed_at <= h.disabled_at) AS n
  FROM hooks h WHERE NOT h.enabled
) h WHERE n < disabled_after OR endpoint NOT IN (SELECT endpoint FROM may_fail)`

// Attempts are numbered from 1, without gaps or repetitions.
const numbersSQL = `
SELECT format('delivery %s counts %s attempts and has %s, numbered %s to %s', d.id, d.attempt_count, coalesce(t.n, 0),
  t.low, t.high)
FROM deliveries d LEFT JOIN tallies t ON t.delivery_id = d.id
WHERE d.attempt_count <> coalesce(t.n, 0) OR t.low <> 1 OR t.high <> t.n OR t.numbers <> t.n`

// An attempt begins after the previous one has ended.
const orderSQL = `
SELECT format('attempt %s of delivery %s began before the one before had ended', number, delivery_id)
FROM (
  SELECT delivery_id, number, started_at,
    lag(started_at + duration_ms * interval '1 ms') OVER (PARTITION BY delivery_id ORDER BY number) AS ended_before
  FROM attempts
) a WHERE started_at < ended_before`

// A delivery's row agrees with its attempts. An attempt without an error got 2xx, and no attempt
// follows it.
const stateSQL = `
SELECT format('delivery %s (%s): %s', id, status, why) FROM (
  SELECT d.id, d.status, CASE
    WHEN (d.delivered_at IS NOT NULL) <> (d.status = 'succeeded')
      THEN 'delivered at ' || coalesce(d.delivered_at::text, 'no time')
    WHEN (d.failed_at IS NOT NULL) <> (d.status = 'failed')
      THEN 'failed at ' || coalesce(d.failed_at::text, 'no time')
    WHEN (d.last_error IS NULL) AND d.status = 'failed' THEN 'it failed without an error'
    WHEN d.status = 'succeeded' AND (t.successes IS DISTINCT FROM 1 OR a.error IS NOT NULL)
      THEN coalesce(t.successes, 0) || ' attempts succeeded, and the last one''s error is ' || coalesce(a.error, 'none')
    WHEN d.status <> 'succeeded' AND t.successes > 0 THEN t.successes || ' attempts succeeded'
    WHEN d.status <> 'pending' AND coalesce(d.lease_until, d.next_attempt_at) IS NOT NULL
      THEN 'it is due or leased, though it ended'
    WHEN d.last_attempt_at IS DISTINCT FROM a.started_at OR d.last_response_status IS DISTINCT FROM a.response_status
      OR d.duration_ms IS DISTINCT FROM a.duration_ms OR (d.last_error IS DISTINCT FROM a.error
        AND coalesce(d.last_error, '') NOT IN ('webhook_disabled', 'given_up'))
      THEN 'its row doesn''t show its last attempt'
    WHEN coalesce(d.delivered_at, d.failed_at) < a.started_at + a.duration_ms * interval '1 ms'
      THEN 'it ended before its last attempt did'
  END AS why
  FROM deliveries d
  LEFT JOIN tallies t ON t.delivery_id = d.id
  LEFT JOIN attempts a ON a.delivery_id = d.id AND a.number = t.high
) s WHERE why IS NOT NULL
UNION ALL
SELECT format('attempt %s of delivery %s got %s and has the error %s', number, delivery_id,
  coalesce(response_status::text, 'no answer'), coalesce(error, 'none'))
FROM attempts WHERE (error IS NULL) <> coalesce(response_status BETWEEN 200 AND 299, false)`
