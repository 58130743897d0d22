package dispatch

import (
	"context"
	"fmt"

	"github.com/go-faster/errors"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// ConfirmInteractions queues interactions for the start of their runs and returns at once.
func (d *Dispatcher) ConfirmInteractions(interactions []change.PendingInteraction) {
	enqueueEach(d, "interaction", interactions, func(one change.PendingInteraction) fmt.Stringer { return one.Interaction }, startConfirmation)
}

func startConfirmation(ctx context.Context, c client.Client, i change.PendingInteraction) error {
	return startRun(ctx, c, i.Interaction, i.Organization, "has somebody confirm a vote, post or comment by e-mail",
		workflows.ConfirmInteractionName, activities.InteractionParams{Interaction: i.Interaction})
}

// EndInteractions queues a signal to each of the runs that wait for the interactions and returns
// at once. A run that misses it finds out when the time is up.
func (d *Dispatcher) EndInteractions(interactions []change.PendingInteraction) {
	enqueueEach(d, "tell that an interaction was confirmed", interactions,
		func(one change.PendingInteraction) fmt.Stringer { return one.Interaction }, endConfirmation)
}

func endConfirmation(ctx context.Context, c client.Client, i change.PendingInteraction) error {
	err := c.SignalWorkflow(ctx, i.Interaction.String(), "", workflows.ConfirmedSignal, nil)
	var none *serviceerror.NotFound
	if err != nil && !errors.As(err, &none) {
		return errors.Wrap(err, "signal the confirmation's workflow")
	}
	return nil
}
