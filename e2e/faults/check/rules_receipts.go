package check

// These rules are about the receiver's ledger.

// The receiver gave every answer that the service recorded.
const madeUpSQL = `
SELECT format('attempt %s of delivery %s got %s, %s', a.number, a.delivery_id, a.response_status, CASE
  WHEN q.request IS NULL THEN 'and nothing was received then'
  ELSE 'and request ' || q.request || ' was answered ' || coalesce(q.status::text, 'nothing') END)
FROM attempts a LEFT JOIN requests q ON q.attempt = a.id
WHERE a.response_status IS NOT NULL AND q.status IS DISTINCT FROM a.response_status`

// The receiver is never down and always reachable. An attempt without an answer therefore reached
// it, unless there was an outage.
const unreceivedSQL = `
SELECT format('attempt %s of delivery %s at %s ended with %s, and nothing was received then', a.number, a.delivery_id,
  a.started_at, coalesce(a.error, 'no error'))
FROM attempts a LEFT JOIN requests q ON q.attempt = a.id
WHERE a.response_status IS NULL AND q.request IS NULL AND NOT EXISTS (
  SELECT FROM outages o WHERE o.at <= a.started_at + a.duration_ms * interval '1 ms' AND o.settled >= a.started_at)`

// Every receipt has a committed delivery, unless its webhook was deleted since.
const nothingSQL = `
SELECT format('request %s to %s is of delivery %L, which is not there', q.request, q.endpoint, q.named)
FROM requests q WHERE NOT known AND NOT EXISTS (SELECT FROM deleted WHERE endpoint = q.endpoint)`

// A request goes to its webhook's URL and names its event's type.
const misdirectedSQL = `
SELECT format('request %s of delivery %s came to %s as %s, and not to %s as %s', q.request, d.id, q.endpoint, q.type,
  h.endpoint, d.event_type)
FROM requests q JOIN deliveries d ON d.id = q.delivery JOIN hooks h ON h.id = d.webhook_id
WHERE q.endpoint <> h.endpoint OR q.type <> d.event_type`

// The body has the frozen bytes, so all attempts have the same. An erasure changes these bytes.
const bodySQL = `
SELECT format('request %s of delivery %s has another body than event %s', q.request, d.id, d.event_id)
FROM requests q JOIN deliveries d ON d.id = q.delivery JOIN frozen f ON f.event = d.event_id
WHERE q.sum <> f.sum AND NOT EXISTS (SELECT FROM erased e WHERE e.subject = f.subject)`

const signatureSQL = `
SELECT format('request %s of delivery %s has a signature that doesn''t check', request, named)
FROM requests WHERE NOT signed`

// A request without an attempt was in flight at a kill.
const unrecordedSQL = `
SELECT format('request %s of delivery %s at %s has no attempt, and nothing was killed from its arrival to its record',
  request, delivery, arrived)
FROM requests WHERE known AND attempt IS NULL AND NOT in_flight`

// A request that was answered 2xx is repeated only if it was in flight at a kill.
const repeatedSQL = `
SELECT format('request %s of delivery %s was answered %s and came again at %s, though nothing was killed meanwhile',
  request, delivery, status, again)
FROM requests WHERE known AND status BETWEEN 200 AND 299 AND again IS NOT NULL AND NOT in_flight`

// A kill interrupts an attempt of a delivery once, because the next worker waits until the
// attempt's lease has ended.
const tooOftenSQL = `
SELECT format('delivery %s was received %s times without a record, and %s kills were about', delivery, n, kills)
FROM (
  SELECT q.delivery, count(DISTINCT q.request) AS n, count(DISTINCT o.n) AS kills
  FROM requests q JOIN outages o ON ` + interrupts + `
  WHERE q.known AND q.attempt IS NULL GROUP BY q.delivery
) i WHERE n > kills`

// atKill: a request that was in flight at the moment of a kill, or while the database accepted only
// some statements. Of the requests that came a little later, only the interrupted ones count: the
// others were made by another process.
const atKill = `(in_flight AND (attempt IS NULL OR EXISTS (
  SELECT FROM outages o WHERE o.at <= recorded AND arrived <= CASE
    WHEN o.interrupts IN ('connections', 'disk full') THEN o.over WHEN o.until IS NOT NULL THEN o.at END)))`

// isDuplicate: a request followed by another of its delivery, although it was answered 2xx or has
// no record.
const isDuplicate = `(known AND again IS NOT NULL AND (attempt IS NULL OR status BETWEEN 200 AND 299))`

// There are at most as many duplicates as attempts in flight at kills.
const duplicatesSQL = `
SELECT format('there are %s, and %s attempts were in flight at kills', n, bound)
FROM (
  SELECT count(*) FILTER (WHERE ` + isDuplicate + `) AS n, count(*) FILTER (WHERE ` + atKill + `) AS bound FROM requests
) c WHERE n > bound`
