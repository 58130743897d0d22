package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/internal/publicid"
)

// This file removes what is too old, of all organizations, by hand-written SQL. A
// statement looks at 500 rows in the order of their ids and removes those that may
// go, so it takes milliseconds whatever it finds. Ids begin with their moment, so
// the primary key says what is old. A row that somebody holds is left for the next
// run: nobody waits for these statements longer than one takes, and they wait for
// nobody. The number of rows stands in the text because a plan that is kept would
// take an argument for a tenth of the table.

// Expired is a kind of rows that go when they are old.
type Expired struct {
	statement string
	// before is the id that divides old from young.
	before func(time.Time) uuid.UUID
}

var (
	// ExpiredDeliveries are deliveries that have ended, with their attempts.
	ExpiredDeliveries = Expired{expiredDeliveriesSQL, func(at time.Time) uuid.UUID { return publicid.DeliveryAt(at).UUID() }}
	// ExpiredEvents are events that no delivery refers to. Those of an
	// organization that counts an event just then are left for the next run.
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

// The feed of an organization says from where on it is whole, so that nobody takes the events
// that it has left for all that there were.
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

// RemoveExpired removes one page of rows that are older than a moment: the page
// that follows the place "after", "" being the first. It returns how many went,
// and the place of the page after; "" says that there is none.
func (s *Store) RemoveExpired(
	ctx context.Context, kind Expired, olderThan time.Time, after string,
) (removed int, next string, err error) {
	if after == "" {
		after = pgtype.UUID{Valid: true}.String()
	}
	var last pgtype.UUID
	err = again(func() error {
		return s.pool.QueryRow(ctx, kind.statement, after, kind.before(olderThan).String()).Scan(&removed, &last)
	})
	if err != nil {
		return 0, "", errors.Wrap(err, "remove what is expired")
	}
	return removed, last.String(), nil
}
