package workflows

import (
	"fmt"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// ReplayDeliveryName is the workflow that an operator starts to send a delivery
// again.
const ReplayDeliveryName = "replay_delivery"

// ReplayDelivery sends a delivery once more. An operator starts it with the delivery's id in
// Temporal's web UI. It returns the id of the new delivery, which has its own run. If the delivery
// can't be replayed, the run fails immediately with the reason.
func ReplayDelivery(ctx workflow.Context, delivery string) (*publicid.Delivery, error) {
	var made publicid.Delivery
	// The id is chosen once, so that only one replay is made even if the activity runs twice.
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return publicid.NewDelivery() }).Get(&made)
	if err != nil {
		return nil, err
	}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, recoverRound), activities.ReplayName,
		activities.ReplayParams{Delivery: delivery, As: made}).Get(ctx, nil)
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) {
		// The error isn't wrapped as an activity's error, so that the run shows the plain reason.
		workflow.SetCurrentDetails(ctx, "Not replayed. "+refused.Message())
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Replayed as `%s`, which has a run of its own.", made))
	return &made, nil
}
