package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/store"
)

// sweepInteractions starts the runs of interactions again that nobody looks after. A run that is
// open, such as one whose mail server is away, is left alone.
func (o *Outbox) sweepInteractions(ctx context.Context, grace time.Duration, result *SweepResult) error {
	// While the mail server is away there may be many, and one behind them may have lost its start.
	var last store.OverdueInteraction
	for {
		due, err := o.store.OverdueInteractions(ctx, grace, last, sweepPage)
		if err != nil {
			return err
		}
		ids := make([]string, len(due))
		for i, d := range due {
			ids[i] = d.ID.String()
		}
		states, err := runStates(ctx, o.runs.RunStates, ids)
		if err != nil {
			return err
		}
		var late []change.PendingInteraction
		for _, d := range due {
			if states[d.ID.String()] != RunOpen {
				late = append(late, change.PendingInteraction{Interaction: d.ID, Organization: d.Organization})
			}
		}
		o.dispatch.ConfirmInteractions(late)
		result.Interactions += len(late)
		activity.RecordHeartbeat(ctx)
		if len(due) < sweepPage {
			return nil
		}
		last = due[len(due)-1]
	}
}
