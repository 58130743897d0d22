// Package retention removes rows whose time is over: deliveries, events, idempotency keys, tombstones,
// the audit log, and everything of deleted webhooks. Each call removes one batch.
package retention

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// ofAll is the reason why the statements of this package touch rows of all organizations.
const ofAll = "the retention removes rows of all organizations"

// This file removes old rows of all organizations, in hand-written SQL. A statement looks at 500
// rows in the order of their ids and removes the expired ones, so it always takes only milliseconds.
// Ids begin with their time of creation, so the primary key finds the old rows.
//
// The statements skip locked rows, which the next run removes. They never wait for other
// transactions. Another transaction waits at most as long as one of them takes.
//
// The limit is a literal. For a parameter, a generic plan would expect a tenth of the table.

// Expired is a kind of row that is removed when it is old.
type Expired struct {
	statement string
	// before returns the id that separates the rows older than a time from the younger ones.
	before func(time.Time) uuid.UUID
}

var (
	// ExpiredDeliveries are deliveries that have ended, with their attempts.
	ExpiredDeliveries = Expired{expiredDeliveriesSQL, func(at time.Time) uuid.UUID { return publicid.DeliveryAt(at).UUID() }}
	// ExpiredEvents are events that no delivery refers to. If another transaction is counting an
	// event of an organization, the organization's numbered events are left for the next run.
	ExpiredEvents = Expired{expiredEventsSQL, func(at time.Time) uuid.UUID { return publicid.EventAt(at).UUID() }}
	// ExpiredRecoveries are recoveries that have ended.
	ExpiredRecoveries = Expired{expiredRecoveriesSQL, func(at time.Time) uuid.UUID { return publicid.RecoveryAt(at).UUID() }}
)

const expiredDeliveriesSQL = `
WITH page AS (
  SELECT id FROM deliveries WHERE id > $1 AND id < $2 ORDER BY id LIMIT 500
), gone AS (
  DELETE FROM deliveries WHERE id IN (
    SELECT d.id FROM deliveries d JOIN page USING (id) WHERE d.status <> 'pending' FOR UPDATE OF d SKIP LOCKED
  ) RETURNING id
)
SELECT (SELECT count(*) FROM gone), (SELECT id FROM page ORDER BY id OFFSET 499)`

// The statement notes the number of the last event that it removed of each organization. The feed
// reports this number, so that a reader notices that older events are missing.
const expiredEventsSQL = `
WITH page AS (
  SELECT id FROM events WHERE id > $1 AND id < $2 ORDER BY id LIMIT 500
), counters AS (
  SELECT organization_id FROM event_sequences
  WHERE organization_id IN (SELECT organization_id FROM events JOIN page USING (id)) FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM events WHERE id IN (
    SELECT e.id FROM events e JOIN page USING (id)
    WHERE (e.sequence IS NULL OR e.organization_id IN (SELECT organization_id FROM counters))
      AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = e.id) FOR UPDATE OF e SKIP LOCKED
  ) RETURNING id, organization_id, sequence
), noted AS (
  UPDATE event_sequences s SET removed = g.sequence
  FROM (SELECT organization_id, max(sequence) AS sequence FROM gone GROUP BY organization_id) g
  WHERE s.organization_id = g.organization_id AND s.removed < g.sequence
)
SELECT (SELECT count(*) FROM gone), (SELECT id FROM page ORDER BY id OFFSET 499)`

const expiredRecoveriesSQL = `
WITH page AS (
  SELECT id FROM recoveries WHERE id > $1 AND id < $2 ORDER BY id LIMIT 500
), gone AS (
  DELETE FROM recoveries WHERE id IN (
    SELECT r.id FROM recoveries r JOIN page USING (id) WHERE r.status <> 'running' FOR UPDATE OF r SKIP LOCKED
  ) RETURNING id
)
SELECT (SELECT count(*) FROM gone), (SELECT id FROM page ORDER BY id OFFSET 499)`

// RemoveExpired removes one page of rows that are older than a time. The page follows the place
// "after", and "" is the first page. It returns how many rows it removed, and the place for the next
// page. A place of "" means that there is none.
func RemoveExpired(
	ctx context.Context, s *postgres.DB, kind Expired, olderThan time.Time, after string,
) (removed int, next string, err error) {
	if after == "" {
		after = pgtype.UUID{Valid: true}.String()
	}
	var last pgtype.UUID
	err = postgres.Again(func() error {
		return s.Across(ofAll).QueryRow(ctx, kind.statement, after, kind.before(olderThan).String()).Scan(&removed, &last)
	})
	if err != nil {
		return 0, "", errors.Wrap(err, "remove expired rows")
	}
	return removed, last.String(), nil
}
