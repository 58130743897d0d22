package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// RunningRecovery is a recovery that a workflow should be running.
type RunningRecovery struct {
	ID           publicid.Recovery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	CreatedAt    time.Time
}

const runningRecoveriesSQL = `
SELECT r.id, r.webhook_id, r.organization_id, r.created_at FROM recoveries r JOIN webhooks h ON h.id = r.webhook_id
WHERE r.status = 'running' AND h.deleted_at IS NULL AND r.created_at <= now() - make_interval(secs => $1)
  AND (r.created_at, r.id) > ($2, $3::uuid)
ORDER BY r.created_at, r.id LIMIT $4`

// RunningRecoveries returns the recoveries of all organizations that have not ended and are older
// than the grace period, oldest first. The page begins after last, the last recovery of the page
// before. The zero value is for the first page. It is for the sweep.
func (s *Store) RunningRecoveries(
	ctx context.Context, grace time.Duration, last RunningRecovery, limit int,
) ([]RunningRecovery, error) {
	rows, err := s.pool.Query(ctx, runningRecoveriesSQL, grace.Seconds(), last.CreatedAt, last.ID.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "find running recoveries")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RunningRecovery, err error) {
		return r, row.Scan(&r.ID, &r.Webhook, &r.Organization, &r.CreatedAt)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read running recoveries")
	}
	return found, nil
}

const cancelRecoverySQL = `
UPDATE recoveries SET status = 'stopped', stopped_reason = 'canceled', ended_at = now()
WHERE id = $1 AND status = 'running'`

// CancelRecovery stops a recovery, of any organization, whose run an operator ended. A recovery that
// has already ended stays as it is.
func (s *Store) CancelRecovery(ctx context.Context, id publicid.Recovery) error {
	if _, err := s.pool.Exec(ctx, cancelRecoverySQL, id.UUID().String()); err != nil {
		return errors.Wrap(err, "cancel the recovery")
	}
	return nil
}
