package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// RemoveExpiredName is the workflow of the retention.
const RemoveExpiredName = "remove_expired"

// RetentionSchedule is the schedule that starts the retention.
const RetentionSchedule = "remove_expired"

// RemoveExpired runs the retention: it removes rows that are older than the deployment's limits.
// The result counts the removed rows.
func RemoveExpired(ctx workflow.Context) (activities.RemoveResult, error) {
	var result activities.RemoveResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, removeRound), activities.RemoveName).Get(ctx, &result)
	return result, err
}
