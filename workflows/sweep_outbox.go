package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// SweepOutbox starts the workflows that are missing: those that were never started, and those that
// were lost. It also ends the deliveries of runs that an operator terminated.
func SweepOutbox(ctx workflow.Context, p activities.SweepParams) (activities.SweepResult, error) {
	var ended activities.EndTerminatedResult
	var result activities.SweepResult
	ctx = workflow.WithActivityOptions(ctx, sweepRound)
	before := endsTerminatedFirst(ctx)
	if before {
		// A run that was terminated before its first claim looks as if it had never been started.
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

// sweepRows runs one activity after the other. Each continues at the place where the previous one
// stopped.
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
