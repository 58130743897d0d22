package workflows

import (
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
	err := workflow.ExecuteActivity(ctx, SweepActivity, p).Get(ctx, &result)
	if err == nil && !before && endsTerminated(ctx) {
		err = workflow.ExecuteActivity(ctx, EndTerminatedActivity).Get(ctx, &ended)
	}
	result.GivenUp += ended.GivenUp
	return result, err
}
