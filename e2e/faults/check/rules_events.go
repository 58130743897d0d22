package check

// These rules are about the deliveries of an event. A first delivery is one that isn't a replay. A
// recovery makes replays, and a test has its own event.

// Every event has a delivery to each webhook that subscribed to it and was enabled.
const missingSQL = `
SELECT format('event %s (%s) has no delivery to webhook %s', e.id, e.type, h.id)
FROM events e JOIN hooks h ON h.organization_id = e.organization_id AND h.events ? e.type
  AND e.created_at > h.must_since AND e.created_at < h.must_until
LEFT JOIN deliveries d ON d.event_id = e.id AND d.webhook_id = h.id AND d.replay_of IS NULL
WHERE d.id IS NULL
UNION ALL
SELECT format('event %s (%s) has no delivery', e.id, e.type)
FROM events e WHERE e.type = 'webhook.test' AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = e.id)`

// An event has at most one delivery to each webhook.
const twiceSQL = `
SELECT format('event %s has %s deliveries to webhook %s', event_id, count(*), webhook_id)
FROM deliveries WHERE replay_of IS NULL GROUP BY event_id, webhook_id HAVING count(*) > 1`

// A webhook gets only events that it subscribes to, and none while it is disabled.
const uncalledSQL = `
SELECT format('delivery %s of event %s (%s) to webhook %s: %s', d.id, e.id, e.type, h.id, CASE
  WHEN d.event_type <> e.type THEN 'its type is ' || d.event_type
  WHEN NOT h.events ? e.type THEN 'the webhook doesn''t subscribe'
  WHEN e.created_at < h.may_since THEN 'the event is older than the webhook'
  ELSE 'the webhook was disabled at ' || h.disabled_at END)
FROM deliveries d JOIN events e ON e.id = d.event_id JOIN hooks h ON h.id = d.webhook_id
WHERE d.event_type <> e.type OR (d.replay_of IS NULL AND e.type <> 'webhook.test' AND (
  NOT h.events ? e.type OR e.created_at < h.may_since OR e.created_at > h.may_until))`

// A change makes one event, even if a kill repeats it. An expired event may have a payload without
// an object, because the object was removed.
const eventTwiceSQL = `
SELECT format('%s of %s has %s events', e.type, f.subject, count(*))
FROM events e JOIN frozen f ON f.event = e.id
WHERE f.subject <> '' AND e.type IN ('post.created', 'comment.created', 'contact.created', 'changelog.published')
GROUP BY e.type, f.subject HAVING count(*) > 1`

// The events of an organization are numbered without gaps, from the first that wasn't removed to
// the last. A rollback leaves no gap.
const numberedSQL = `
SELECT format('the events of organization %s have %s of the numbers %s to %s', s.organization_id, count(e.sequence), s.removed + 1, s.last)
FROM event_sequences s LEFT JOIN events e ON e.organization_id = s.organization_id AND e.sequence > s.removed
GROUP BY s.organization_id, s.last, s.removed HAVING count(e.sequence) <> s.last - s.removed OR max(e.sequence) > s.last
UNION ALL
SELECT format('event %s (%s) has no number', id, type) FROM events WHERE sequence IS NULL AND type <> 'webhook.test'`

// The load marks writes with an Idempotency-Key in their text, which is unique. Such a write takes
// effect once, even if a kill makes the load repeat it.
const onceSQL = `
SELECT format('%s with an Idempotency-Key took effect %s times', what, count(*)) FROM (
  SELECT title AS what, organization_id FROM posts UNION ALL SELECT body_text, organization_id FROM comments
  UNION ALL SELECT name, organization_id FROM contacts
) made WHERE what LIKE '` + Once + `%' GROUP BY what, organization_id HAVING count(*) > 1`

// A replay has the same event and webhook as its original.
const replaySQL = `
SELECT format('delivery %s is a replay of %s, which is of another event or webhook', d.id, of.id)
FROM deliveries d JOIN deliveries of ON of.id = d.replay_of
WHERE (d.event_id, d.webhook_id) <> (of.event_id, of.webhook_id)`

// Only a recovery makes replays, and it skips deliveries that have one.
const replayTwiceSQL = `
SELECT format('delivery %s was replayed %s times', replay_of, count(*))
FROM deliveries WHERE replay_of IS NOT NULL GROUP BY replay_of HAVING count(*) > 1`

// A recovery replays each delivery that failed within its window and had ended when it was
// requested, if the webhook subscribes to the event's type.
const replayMissingSQL = `
SELECT format('delivery %s failed and recovery %s has not replayed it', d.id, r.id)
FROM recoveries r JOIN hooks h ON h.id = r.webhook_id
JOIN deliveries d ON d.webhook_id = r.webhook_id AND d.status = 'failed' AND d.failed_at < r.created_at
  AND d.created_at >= r.since AND d.created_at < r.until
  AND CASE WHEN r.event_type IS NULL THEN h.events ? d.event_type ELSE d.event_type = r.event_type END
WHERE NOT EXISTS (SELECT FROM deliveries replay WHERE replay.replay_of = d.id)`

// A recovery completes.
const recoverySQL = `
SELECT format('recovery %s is %s%s', id, status, ': ' || stopped_reason)
FROM recoveries WHERE status <> 'completed' OR ended_at IS NULL`

// An acknowledged object exists.
const subjectsSQL = `(
  SELECT id, organization_id FROM posts UNION ALL SELECT id, organization_id FROM comments
  UNION ALL SELECT id, organization_id FROM votes UNION ALL SELECT id, organization_id FROM contacts
  UNION ALL SELECT id, organization_id FROM changelog_entries
)`

const writeLostSQL = `
SELECT format('%s of %s was acknowledged at %s and has no row', w.type, w.subject, w.at)
FROM writes w LEFT JOIN ` + subjectsSQL + ` s USING (id) WHERE s.id IS NULL`

// Its event exists, too, if a webhook was subscribed to it.
const eventLostSQL = `
SELECT format('%s of %s was acknowledged %s times and has %s events, the last time at %s',
  w.type, w.subject, w.n, coalesce(e.n, 0), w.last)
FROM (
  SELECT w.subject, w.type, count(*) AS n, max(w.at) AS last
  FROM writes w JOIN ` + subjectsSQL + ` s USING (id)
  WHERE EXISTS (
    SELECT FROM hooks h WHERE h.organization_id = s.organization_id AND h.events ? w.type
      AND w.at > h.must_since AND w.at < h.must_until)
  GROUP BY w.subject, w.type
) w
LEFT JOIN (
  SELECT f.subject, e.type, count(*) AS n FROM frozen f JOIN events e ON e.id = f.event GROUP BY f.subject, e.type
) e ON e.subject = w.subject AND e.type = w.type
WHERE coalesce(e.n, 0) < w.n`
