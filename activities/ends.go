package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"earshot/internal/publicid"
)

// DeliveriesParams name deliveries.
type DeliveriesParams struct {
	Deliveries []publicid.Delivery `json:"deliveries"`
}

// GiveUp ends deliveries that are pending, because an operator wants it.
func (d *Deliveries) GiveUp(ctx context.Context, p DeliveriesParams) error {
	n, err := d.store.EndDeliveries(ctx, runOf(ctx), ErrorGivenUp, p.Deliveries)
	d.counts.failed(ctx, ErrorGivenUp, n)
	return err
}

func runOf(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// Revived is the answer to Revive.
type Revived struct {
	// Run that asked. A run that was made by a reset finds the one before it here.
	Run string `json:"run"`
	// Pending are the deliveries to go on with.
	Pending []Due `json:"pending,omitempty"`
}

// Revive lets those of the deliveries that failed for good begin anew that ended
// before the run that asks.
func (d *Deliveries) Revive(ctx context.Context, p DeliveriesParams) (Revived, error) {
	result := Revived{Run: runOf(ctx)}
	rows, err := d.store.ReviveDeliveries(ctx, result.Run, p.Deliveries)
	if err != nil {
		return Revived{}, err
	}
	for _, r := range rows {
		result.Pending = append(result.Pending, Due{ID: r.ID, Webhook: r.Webhook, Attempt: r.Attempts + 1})
	}
	return result, nil
}
