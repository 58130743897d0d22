package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// DeliveriesParams name deliveries.
type DeliveriesParams struct {
	Deliveries []publicid.Delivery `json:"deliveries"`
}

// GiveUp ends deliveries that are pending, because an operator wants it.
func (d *Deliveries) GiveUp(ctx context.Context, p DeliveriesParams) error {
	return giveUp(ctx, d.store, p.Deliveries)
}

func giveUp(ctx context.Context, s *store.Store, deliveries []publicid.Delivery) error {
	results := make([]store.Result, len(deliveries))
	for i, id := range deliveries {
		results[i] = store.Result{ID: id, Error: ErrorGivenUp}
	}
	_, err := s.RecordResults(ctx, results)
	return err
}

// Revive lets those of the deliveries that failed for good begin anew that failed
// before the run that asks. It returns what is pending then.
func (d *Deliveries) Revive(ctx context.Context, p DeliveriesParams) (AttemptResult, error) {
	rows, err := d.store.ReviveDeliveries(ctx, activity.GetInfo(ctx).WorkflowExecution.RunID, p.Deliveries)
	if err != nil {
		return AttemptResult{}, err
	}
	var result AttemptResult
	for _, r := range rows {
		result.Pending = append(result.Pending, Pending{Due: Due{ID: r.ID, Webhook: r.Webhook, Attempt: r.Attempts + 1}})
	}
	return result, nil
}
