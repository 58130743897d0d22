package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"earshot/internal/delivery"
	"earshot/internal/publicid"
)

// DeliveriesParams names deliveries.
type DeliveriesParams struct {
	Deliveries []publicid.Delivery `json:"deliveries"`
}

// GiveUp ends pending deliveries at an operator's request.
func (d *Deliveries) GiveUp(ctx context.Context, p DeliveriesParams) error {
	n, err := delivery.End(ctx, d.store, runOf(ctx), ErrorGivenUp, p.Deliveries)
	d.counts.failed(ctx, ErrorGivenUp, n)
	return err
}

func runOf(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// Revived is the result of Revive.
type Revived struct {
	// Run is the run that called the activity. A run that was created by a reset finds the id of
	// the previous run here.
	Run string `json:"run"`
	// Pending are the deliveries to continue with.
	Pending []Due `json:"pending,omitempty"`
}

// Revive restarts those of the deliveries that failed for good before the calling run.
func (d *Deliveries) Revive(ctx context.Context, p DeliveriesParams) (Revived, error) {
	result := Revived{Run: runOf(ctx)}
	rows, err := delivery.Revive(ctx, d.store, result.Run, p.Deliveries)
	if err != nil {
		return Revived{}, err
	}
	for _, r := range rows {
		result.Pending = append(result.Pending, Due{ID: r.ID, Webhook: r.Webhook, Attempt: r.Attempts + 1})
	}
	return result, nil
}
