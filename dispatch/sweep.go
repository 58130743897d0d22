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

// SweepNow runs the sweep once, for what was overdue at a moment: a process that
// starts may follow one that was killed between a commit and the start of its
// deliveries. What is due since is on its way from this process or another.
func SweepNow(ctx context.Context, c client.Client, before time.Time) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.SweepSchedule + "-at-start", TaskQueue: workflows.MainQueue,
		// One that is open may be lost with its worker, and knows nothing of what came
		// after the moment that it asks for. This one finds all that it would.
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		StaticSummary:            "once at the start of a process",
		WorkflowRunTimeout:       10 * time.Minute,
	}, workflows.SweepOutboxName, activities.SweepParams{Before: before})
	if err != nil {
		return errors.Wrap(err, "start the first sweep")
	}
	return nil
}
