package dispatch

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// RunBackfills queues searches for contacts in old activity for their start and returns at once.
func (d *Dispatcher) RunBackfills(running []change.RunningBackfill) {
	enqueueEach(d, "backfill", running, func(one change.RunningBackfill) fmt.Stringer { return one.Backfill }, startBackfill)
}

// startBackfill leaves a run that is open alone; a closed one is followed by another, because the row
// decides what is still to be done.
func startBackfill(ctx context.Context, c client.Client, r change.RunningBackfill) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    r.Backfill.String(),
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.OrganizationIDs.ValueSet([]string{r.Organization.String()})),
		Priority:              fairTo(r.Organization),
		StaticSummary:         "makes contacts of people with old activity",
	}, workflows.BackfillContactsName, activities.BackfillParams{Backfill: r.Backfill})
	return err
}
