package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/feedback"
	"earshot/internal/store"
)

// sweepRecoveries starts every recovery again that should run and doesn't, and
// returns how many. One whose run an operator terminated is stopped instead.
func (o *Outbox) sweepRecoveries(ctx context.Context, grace time.Duration) (started int, err error) {
	var last store.RunningRecovery
	for {
		rows, err := o.store.RunningRecoveries(ctx, grace, last, sweepPage)
		if err != nil {
			return started, err
		}
		for _, r := range rows {
			again, err := o.isForgotten(ctx, r)
			if err != nil {
				return started, err
			}
			if again {
				o.dispatch.Recover([]feedback.Recover{{Recovery: r.ID, Webhook: r.Webhook, Organization: r.Organization}})
				started++
			}
			activity.RecordHeartbeat(ctx)
		}
		if len(rows) < sweepPage {
			return started, nil
		}
		last = rows[len(rows)-1]
	}
}

func (o *Outbox) isForgotten(ctx context.Context, r store.RunningRecovery) (bool, error) {
	open, err := o.runs.IsOpen(ctx, r.ID.String())
	if open || err != nil {
		return false, err
	}
	terminated, err := o.runs.WasTerminated(ctx, r.ID.String())
	if terminated && err == nil {
		err = o.store.CancelRecovery(ctx, r.ID)
	}
	return !terminated && err == nil, err
}
