package dispatch

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/workflows"
)

// FirstSweep is the workflow id of SweepNow.
const FirstSweep = workflows.SweepSchedule + "-at-start"

// SweepNow runs the sweep once for rows that were overdue before the given time. The previous
// process may have been killed between a commit and the start of its deliveries. Deliveries that
// became due later are started by this process or another.
func SweepNow(ctx context.Context, c client.Client, before time.Time) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: FirstSweep, TaskQueue: workflows.MainQueue,
		// An open sweep may have lost its worker, and it covers only rows from before its own time.
		// The new sweep covers all of these rows and more.
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		StaticSummary:            "once at the start of a process",
		WorkflowRunTimeout:       10 * time.Minute,
	}, workflows.SweepOutboxName, activities.SweepParams{Before: before})
	if err != nil {
		return errors.Wrap(err, "start the first sweep")
	}
	return nil
}
