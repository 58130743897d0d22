package check

// The rules of what the receiver wrote down.

// What the service says that it was answered, it was answered.
const madeUpSQL = `
SELECT format('attempt %s of delivery %s got %s, %s', a.number, a.delivery_id, a.response_status, CASE
  WHEN q.request IS NULL THEN 'and nothing was received then'
  ELSE 'and request ' || q.request || ' was answered ' || coalesce(q.status::text, 'nothing') END)
FROM attempts a LEFT JOIN requests q ON q.attempt = a.id
WHERE a.response_status IS NOT NULL AND q.status IS DISTINCT FROM a.response_status`

// The receiver is never down and always reached, so an attempt without an answer came to
// it all the same, unless something was away meanwhile.
const unreceivedSQL = `
SELECT format('attempt %s of delivery %s at %s ended with %s, and nothing was received then', a.number, a.delivery_id,
  a.started_at, coalesce(a.error, 'no error'))
FROM attempts a LEFT JOIN requests q ON q.attempt = a.id
WHERE a.response_status IS NULL AND q.request IS NULL AND NOT EXISTS (
  SELECT FROM outages o WHERE o.at <= a.started_at + a.duration_ms * interval '1 ms' AND o.settled >= a.started_at)`

// Nothing is received but what was committed, except from a webhook that was deleted
// since.
const nothingSQL = `
SELECT format('request %s to %s is of delivery %L, which is not there', q.request, q.endpoint, q.named)
FROM requests q WHERE NOT known AND NOT EXISTS (SELECT FROM deleted WHERE endpoint = q.endpoint)`

// It comes to its webhook's URL and says its event's type.
const misdirectedSQL = `
SELECT format('request %s of delivery %s came to %s as %s, and not to %s as %s', q.request, d.id, q.endpoint, q.type,
  h.endpoint, d.event_type)
FROM requests q JOIN deliveries d ON d.id = q.delivery JOIN hooks h ON h.id = d.webhook_id
WHERE q.endpoint <> h.endpoint OR q.type <> d.event_type`

// Its body has the frozen bytes, so all attempts have the same. An erasure makes other ones of them.
const bodySQL = `
SELECT format('request %s of delivery %s has another body than event %s', q.request, d.id, d.event_id)
FROM requests q JOIN deliveries d ON d.id = q.delivery JOIN frozen f ON f.event = d.event_id
WHERE q.sum <> f.sum AND NOT EXISTS (SELECT FROM erased e WHERE e.subject = f.subject)`

const signatureSQL = `
SELECT format('request %s of delivery %s has a signature that doesn''t check', request, named)
FROM requests WHERE NOT signed`

// What no attempt tells of was in flight when something was killed.
const unrecordedSQL = `
SELECT format('request %s of delivery %s at %s has no attempt, and nothing was killed from its arrival to its record',
  request, delivery, arrived)
FROM requests WHERE known AND attempt IS NULL AND NOT in_flight`

// What was answered 2xx comes again only if it was in flight when something was killed.
const repeatedSQL = `
SELECT format('request %s of delivery %s was answered %s and came again at %s, though nothing was killed meanwhile',
  request, delivery, status, again)
FROM requests WHERE known AND status BETWEEN 200 AND 299 AND again IS NOT NULL AND NOT in_flight`

// A kill interrupts an attempt of a delivery once: who takes over waits until the
// attempt must be over.
const tooOftenSQL = `
SELECT format('delivery %s was received %s times without a record, and %s kills were about', delivery, n, kills)
FROM (
  SELECT q.delivery, count(DISTINCT q.request) AS n, count(DISTINCT o.n) AS kills
  FROM requests q JOIN outages o ON ` + interrupts + `
  WHERE q.known AND q.attempt IS NULL GROUP BY q.delivery
) i WHERE n > kills`

// atKill: a request that was in flight at the very moment of a kill, or while the
// database took some statements and not others. Of those that came a little later only
// the interrupted ones count: the others were surely made by somebody else.
const atKill = `(in_flight AND (attempt IS NULL OR EXISTS (
  SELECT FROM outages o WHERE o.at <= recorded AND arrived <= CASE
    WHEN o.interrupts IN ('connections', 'disk full') THEN o.over WHEN o.until IS NOT NULL THEN o.at END)))`

// isDuplicate: a request that was followed by another of its delivery though it had been
// answered 2xx, or instead of being recorded.
const isDuplicate = `(known AND again IS NOT NULL AND (attempt IS NULL OR status BETWEEN 200 AND 299))`

// There are no more duplicates than there were attempts in flight at kills.
const duplicatesSQL = `
SELECT format('there are %s, and %s attempts were in flight at kills', n, bound)
FROM (
  SELECT count(*) FILTER (WHERE ` + isDuplicate + `) AS n, count(*) FILTER (WHERE ` + atKill + `) AS bound FROM requests
) c WHERE n > bound`
