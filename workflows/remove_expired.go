package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// RemoveExpired runs the retention: it removes rows that are older than the deployment's limits.
// The result counts the removed rows.
func RemoveExpired(ctx workflow.Context) (activities.RemoveResult, error) {
	var result activities.RemoveResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, removeRound), RemoveActivity).Get(ctx, &result)
	return result, err
}
