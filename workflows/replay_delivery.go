package workflows

import (
	"fmt"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// ReplayDelivery sends a delivery once more, for an operator who types its id into
// the web UI. It returns the id of the new delivery, whose run is another. What can't
// be replayed fails at once and says why.
func ReplayDelivery(ctx workflow.Context, delivery string) (*publicid.Delivery, error) {
	var made publicid.Delivery
	// Chosen once, so that one replay is made although the activity may run twice.
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return publicid.NewDelivery() }).Get(&made)
	if err != nil {
		return nil, err
	}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, recoverRound), ReplayActivity,
		activities.ReplayParams{Delivery: delivery, As: made}).Get(ctx, nil)
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) {
		// By itself and not as an activity's, so that the run says it plainly.
		workflow.SetCurrentDetails(ctx, "Not replayed. "+refused.Message())
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Replayed as `%s`, which has a run of its own.", made))
	return &made, nil
}
