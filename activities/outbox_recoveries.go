package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/store"
)

// sweepRecoveries starts every recovery again that should run and doesn't. One whose
// run an operator terminated is stopped instead.
func (o *Outbox) sweepRecoveries(ctx context.Context, grace time.Duration, result *SweepResult) error {
	var last store.RunningRecovery
	for {
		rows, err := o.store.RunningRecoveries(ctx, grace, last, sweepPage)
		if err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = r.ID.String()
		}
		states, err := runStates(ctx, o.runs.RunStatesForSure, ids) // there are few
		if err != nil {
			return err
		}
		for _, r := range rows {
			switch states[r.ID.String()] {
			case RunOpen:
			case RunTerminated:
				if err := o.store.CancelRecovery(ctx, r.ID); err != nil {
					return err
				}
			case RunOver:
				o.dispatch.RunRecoveries([]change.RunningRecovery{{Recovery: r.ID, Webhook: r.Webhook, Organization: r.Organization}})
				result.Recoveries++
			}
		}
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}
