package change

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// eventRow is an event to insert.
type eventRow struct {
	ID      publicid.Event
	Type    string
	At      time.Time
	Payload []byte
}

// deliveryRow is a new delivery of an event.
type deliveryRow struct {
	ID        publicid.Delivery
	Webhook   publicid.Webhook
	Event     publicid.Event
	EventType string
	// URL is the column of the webhook, which has only the origin in clear.
	URL string
}

// Webhooks are locked, because one that is deleted before its delivery is inserted would fail the
// whole change. The events are counted after that: a webhook is locked before the event counter
// (internal/change/README.md). Otherwise Postgres could choose the other order.
//
// A delivery's id has the time of its event's id, so that lists have the order of the events.
const insertEventRowsSQL = `
WITH told AS (
  SELECT * FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::bytea[]) WITH ORDINALITY AS e(id, type, at, payload, place)
), hooks AS (
  SELECT id, url, events FROM webhooks
  WHERE organization_id = $1 AND enabled AND deleted_at IS NULL AND events ?| $6::text[] ORDER BY id FOR KEY SHARE
), sent AS MATERIALIZED (
  SELECT (substr(e.id::text, 1, 18) || substr(gen_random_uuid()::text, 19))::uuid AS id, e.id AS event_id, e.type, e.at, h.id AS webhook_id, h.url
  FROM told e JOIN hooks h ON h.events ? e.type
), kept AS MATERIALIZED (
  SELECT e.* FROM told e, (SELECT count(*) FROM hooks) locked WHERE NOT $7 OR EXISTS (SELECT FROM sent WHERE sent.event_id = e.id)
), counted AS (
  INSERT INTO event_sequences AS s (organization_id, last) SELECT $1, count(*) FROM kept HAVING count(*) > 0
  ON CONFLICT (organization_id) DO UPDATE SET last = s.last + excluded.last
  RETURNING last - (SELECT count(*) FROM kept) AS before
), recorded AS (
  INSERT INTO events (id, organization_id, created_at, type, payload, sequence)
  SELECT id, $1, at, type, payload, before + row_number() OVER (ORDER BY place) FROM kept, counted
), delivered AS (
  INSERT INTO deliveries (id, organization_id, created_at, next_attempt_at, webhook_id, event_id, event_type)
  SELECT id, $1, at, at, webhook_id, event_id, type FROM sent
)
SELECT id, webhook_id, event_id, type, url FROM sent`

func queueEvents(onto *pgx.Batch, of publicid.Organization, last atCommit, made *[]deliveryRow) {
	all := last.Events
	ids, types := make(postgres.UuidArray, len(all)), make([]string, len(all))
	at, payloads := make([]time.Time, len(all)), make([][]byte, len(all))
	for i, e := range all {
		ids[i], types[i], at[i], payloads[i] = postgres.UUID(e.ID), e.Type, e.At, e.Payload
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(types)))
	onto.Queue(insertEventRowsSQL, of, ids, types, at, payloads, distinct, last.SubscribedOnly).Query(func(rows pgx.Rows) (err error) {
		*made, err = pgx.CollectRows(rows, pgx.RowToStructByPos[deliveryRow])
		return err
	})
}
