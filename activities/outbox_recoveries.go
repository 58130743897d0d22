package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/feedback"
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
		for _, r := range rows {
			if err := o.sweepRecovery(ctx, r, result); err != nil {
				return err
			}
			activity.RecordHeartbeat(ctx)
		}
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}

func (o *Outbox) sweepRecovery(ctx context.Context, r store.RunningRecovery, result *SweepResult) error {
	state, err := o.runs.RunState(ctx, r.ID.String())
	switch {
	case err != nil || state == RunOpen:
		return err
	case state == RunTerminated:
		return o.store.CancelRecovery(ctx, r.ID)
	}
	o.dispatch.RunRecoveries([]feedback.RunningRecovery{{Recovery: r.ID, Webhook: r.Webhook, Organization: r.Organization}})
	result.Recoveries++
	return nil
}
