package delivery

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Overdue is a pending delivery whose attempt is overdue.
type Overdue struct {
	ID           publicid.Delivery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	EventType    string
	URL          string
	// WorkflowID is empty if no workflow has claimed the delivery yet.
	WorkflowID string
	DueAt      time.Time
}

const overdueSQL = `
SELECT d.id, d.webhook_id, d.organization_id, d.event_type, h.url, coalesce(d.workflow_id, ''), d.next_attempt_at
FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
WHERE d.status = 'pending' AND h.deleted_at IS NULL AND d.next_attempt_at < now() - make_interval(secs => $1)
  AND (d.lease_until IS NULL OR d.lease_until < now())
  AND (d.next_attempt_at, d.id) > ($2, $3::uuid)
ORDER BY d.next_attempt_at, d.id
LIMIT $4`

// FindOverdue returns a page of deliveries that are overdue by more than the grace, longest
// overdue first. Pass the last one of the page before, or the zero value. A page has at most limit
// rows.
func FindOverdue(ctx context.Context, s *postgres.DB, grace time.Duration, last Overdue, limit int) ([]Overdue, error) {
	rows, err := s.Across("the sweep looks at all organizations").Query(ctx, overdueSQL, grace.Seconds(), last.DueAt, last.ID.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "look for overdue deliveries")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overdue, err error) {
		err = row.Scan(&o.ID, &o.Webhook, &o.Organization, &o.EventType, &o.URL, &o.WorkflowID, &o.DueAt)
		return o, err
	})
	if err != nil {
		return nil, errors.Wrap(err, "read overdue deliveries")
	}
	return found, nil
}

// Followed is a delivery and the workflow that is responsible for it.
type Followed struct {
	WorkflowID string
	ID         publicid.Delivery
}

const abandonedSQL = `
SELECT f.workflow_id, d.id
FROM unnest($1::text[], $2::uuid[]) AS f(workflow_id, id) JOIN deliveries d ON d.id = f.id JOIN webhooks h ON h.id = d.webhook_id
WHERE d.status = 'pending' AND h.deleted_at IS NULL AND (d.workflow_id IS NULL OR d.workflow_id = f.workflow_id)
  AND (d.lease_until IS NULL OR d.lease_until < now())`

// Abandoned returns the pending deliveries that have no attempt in flight and that no workflow
// other than the given one has claimed.
func Abandoned(ctx context.Context, s *postgres.DB, of []Followed) ([]Followed, error) {
	workflows, ids := make([]string, len(of)), make([]string, len(of))
	for i, f := range of {
		workflows[i], ids[i] = f.WorkflowID, f.ID.UUID().String()
	}
	rows, err := s.Across("the sweep looks at all organizations").Query(ctx, abandonedSQL, workflows, ids)
	if err != nil {
		return nil, errors.Wrap(err, "look for abandoned deliveries")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Followed])
	if err != nil {
		return nil, errors.Wrap(err, "read abandoned deliveries")
	}
	return found, nil
}
