package delivery

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// PutOff is an attempt that can't be made yet.
type PutOff struct {
	ID publicid.Delivery
	// Number of the attempt, from 1.
	Number int
	Delay  time.Duration
}

const putOffSQL = `
WITH o AS (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::float8[]) AS o(id, number, delay)
), held AS (
  SELECT id FROM deliveries WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
)
UPDATE deliveries d
SET next_attempt_at = now() + make_interval(secs => o.delay), workflow_id = $4, workflow_run_id = $5
FROM o JOIN held ON held.id = o.id
WHERE d.id = o.id AND d.status = 'pending' AND d.attempt_count = o.number - 1
  AND (d.lease_until IS NULL OR d.lease_until <= now())`

// PutOffAll postpones the attempts and notes the run that is responsible for them. It skips
// a delivery that is at a later attempt, has ended or is being attempted.
func PutOffAll(ctx context.Context, s *postgres.DB, workflowID, runID string, all []PutOff) error {
	ids, numbers, delays := make([]string, len(all)), make([]int, len(all)), make([]float64, len(all))
	for i, p := range all {
		ids[i], numbers[i], delays[i] = p.ID.UUID().String(), p.Number, p.Delay.Seconds()
	}
	err := s.OnDeliveries(ctx, func() error {
		_, err := s.Across(ofAll).Exec(ctx, putOffSQL, ids, numbers, delays, workflowID, runID)
		return err
	})
	if err != nil {
		return errors.Wrap(err, "put deliveries off")
	}
	return nil
}
