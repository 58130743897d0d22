package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/internal/publicid"
)

// This file has the statements of the changes that are made most: a post, a vote, a comment.
// Each is for many callers of one organization, whose rows alone it touches, and goes past
// Ent for that. What is out of the ordinary isn't in their answers; it is made through
// Ent, one by one.

// Subscriber is an enabled webhook that subscribes to an event.
type Subscriber struct {
	ID  publicid.Webhook
	URL string
}

// Locked, because a webhook that is deleted before its delivery is inserted would fail all.
const subscribersSQL = `
SELECT id, url FROM webhooks WHERE organization_id = $1 AND enabled AND deleted_at IS NULL AND events @> to_jsonb($2::text) FOR KEY SHARE`

// Subscribers finds the webhooks of an event type.
func (p *Pipeline) Subscribers(eventType string, found *[]Subscriber) {
	collect(p, found, pgx.RowToStructByPos[Subscriber], subscribersSQL, p.of, eventType)
}

// Happened are the events of what is inserted, with their deliveries.
type Happened struct {
	// Type is that of all of them.
	Type string
	// Events by the row that they are about: where that isn't inserted, because another one
	// is in its way, they aren't either.
	subjects, events uuidArray
	at               []time.Time
	payloads         [][]byte
	deliveries, of   uuidArray
	webhooks         uuidArray
}

// Add adds the event of a row.
func (h *Happened) Add(subject uuid.UUID, id publicid.Event, at time.Time, payload []byte) {
	h.subjects, h.events = append(h.subjects, pgtype.UUID{Bytes: subject, Valid: true}), append(h.events, rawID(id))
	h.at, h.payloads = append(h.at, at), append(h.payloads, payload)
}

// Send adds a delivery of an event, due at once.
func (h *Happened) Send(id publicid.Delivery, of publicid.Event, to publicid.Webhook) {
	h.deliveries, h.of = append(h.deliveries, rawID(id)), append(h.of, rawID(of))
	h.webhooks = append(h.webhooks, rawID(to))
}

func (h *Happened) args() []any {
	return []any{h.Type, h.subjects, h.events, h.at, h.payloads, h.deliveries, h.of, h.webhooks}
}

// withEvents ends a statement whose first table, made, are the rows that it inserted: it
// records their events, and answers with their ids. First is the number of its first
// argument here; they are those of Happened.args.
func withEvents(insert string, first int) string {
	names := []string{"$type", "$subjects", "$events", "$times", "$payloads", "$deliveries", "$of", "$webhooks"}
	var numbered []string
	for i, name := range names {
		numbered = append(numbered, name, fmt.Sprintf("$%d", first+i))
	}
	return insert + strings.NewReplacer(numbered...).Replace(`, happened AS (
  SELECT e.* FROM unnest($subjects::uuid[], $events::uuid[], $times::timestamptz[], $payloads::bytea[]) e(subject, id, at, payload)
  JOIN made ON made.id = e.subject
), counted_events AS (
  INSERT INTO event_sequences AS s (organization_id, last) SELECT $1, count(*) FROM happened HAVING count(*) > 0
  ON CONFLICT (organization_id) DO UPDATE SET last = s.last + excluded.last
  RETURNING last - (SELECT count(*) FROM happened) AS before
), recorded AS (
  INSERT INTO events (id, organization_id, created_at, type, payload, sequence)
  SELECT id, $1, at, $type::text, payload, before + row_number() OVER (ORDER BY at, id) FROM happened, counted_events
), sent AS (
  INSERT INTO deliveries (id, organization_id, created_at, next_attempt_at, webhook_id, event_id, event_type)
  SELECT d.id, $1, e.at, e.at, d.webhook_id, d.event_id, $type::text
  FROM unnest($deliveries::uuid[], $of::uuid[], $webhooks::uuid[]) d(id, event_id, webhook_id) JOIN happened e ON e.id = d.event_id
)
SELECT id FROM made`)
}

// uuidArray is one as pgx encodes it without reflection and without text.
type uuidArray = pgtype.FlatArray[pgtype.UUID]

func raw[ID interface{ UUID() uuid.UUID }](ids []ID) uuidArray {
	all := make(uuidArray, len(ids))
	for i, id := range ids {
		all[i] = rawID(id)
	}
	return all
}

func rawID[ID interface{ UUID() uuid.UUID }](id ID) pgtype.UUID {
	return pgtype.UUID{Bytes: id.UUID(), Valid: true}
}

func maybe[ID interface{ UUID() uuid.UUID }](id *ID) pgtype.UUID {
	if id == nil {
		return pgtype.UUID{}
	}
	return rawID(*id)
}
