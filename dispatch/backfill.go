package dispatch

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// RunBackfills queues searches for contacts in old activity for their start and returns at once.
func (d *Dispatcher) RunBackfills(running []change.RunningBackfill) {
	enqueueEach(d, "backfill", running, func(one change.RunningBackfill) fmt.Stringer { return one.Backfill }, startBackfill)
}

func startBackfill(ctx context.Context, c client.Client, r change.RunningBackfill) error {
	return startRun(ctx, c, r.Backfill, r.Organization, "makes contacts of people with old activity",
		workflows.BackfillContactsName, activities.BackfillParams{Backfill: r.Backfill})
}
