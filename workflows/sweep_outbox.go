package workflows

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// SweepOutbox starts again what was not started, and what lost its workflow, and
// ends the deliveries of runs that an operator terminated.
func SweepOutbox(ctx workflow.Context, p activities.SweepParams) (activities.SweepResult, error) {
	var ended activities.EndTerminatedResult
	var result activities.SweepResult
	ctx = workflow.WithActivityOptions(ctx, sweepRound)
	before := endsTerminatedFirst(ctx)
	if before {
		// What was terminated before anybody claimed it looks like never started.
		if err := workflow.ExecuteActivity(ctx, EndTerminatedActivity).Get(ctx, &ended); err != nil {
			return result, err
		}
	}
	err := sweepRows(ctx, p, &result)
	if err == nil && !before && endsTerminated(ctx) {
		err = workflow.ExecuteActivity(ctx, EndTerminatedActivity).Get(ctx, &ended)
	}
	result.GivenUp += ended.GivenUp
	return result, err
}

// sweepRows has one activity after the other go on where the one before came to.
func sweepRows(ctx workflow.Context, p activities.SweepParams, result *activities.SweepResult) error {
	for {
		var part activities.SweepResult
		if err := workflow.ExecuteActivity(ctx, SweepActivity, p).Get(ctx, &part); err != nil {
			return err
		}
		result.Add(part)
		if part.Next == nil {
			return nil
		}
		p.From = part.Next
	}
}

// SweepNow runs the sweep once, for what was overdue at a moment: a process that
// starts may follow one that was killed between a commit and the start of its
// deliveries. What is due since is on its way from this process or another.
func SweepNow(ctx context.Context, c client.Client, before time.Time) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: SweepSchedule + "-at-start", TaskQueue: MainQueue,
		// One that is open may be lost with its worker, and knows nothing of what came
		// after the moment that it asks for. This one finds all that it would.
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		StaticSummary:            "once at the start of a process",
		WorkflowRunTimeout:       10 * time.Minute,
	}, SweepOutboxName, activities.SweepParams{Before: before})
	if err != nil {
		return errors.Wrap(err, "start the first sweep")
	}
	return nil
}
