package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// RemoveExpired is the retention: it removes what is older than the deployment
// keeps. Its result counts what went.
func RemoveExpired(ctx workflow.Context) (activities.RemoveResult, error) {
	var result activities.RemoveResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, removeRound), RemoveActivity).Get(ctx, &result)
	return result, err
}
