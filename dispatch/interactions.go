package dispatch

import (
	"context"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// ConfirmInteractions queues interactions for the start of their runs and returns at once.
func (d *Dispatcher) ConfirmInteractions(interactions []change.PendingInteraction) {
	requests := make([]request, len(interactions))
	for i, one := range interactions {
		requests[i] = request{"interaction", one.Interaction, func(ctx context.Context, c client.Client) error {
			return startConfirmation(ctx, c, one)
		}}
	}
	d.enqueue(requests)
}

// startConfirmation leaves a run that is open alone; a closed one is followed by another,
// because the row decides what is still to be done.
func startConfirmation(ctx context.Context, c client.Client, i change.PendingInteraction) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    i.Interaction.String(),
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.OrganizationIDs.ValueSet([]string{i.Organization.String()})),
		Priority:              fairTo(i.Organization),
		StaticSummary:         "has somebody confirm a vote, post or comment by e-mail",
	}, workflows.ConfirmInteractionName, activities.InteractionParams{Interaction: i.Interaction})
	return err
}

// EndInteractions queues a signal to each of the runs that wait for the interactions and returns
// at once. A run that misses it finds out when the time is up.
func (d *Dispatcher) EndInteractions(interactions []change.PendingInteraction) {
	requests := make([]request, len(interactions))
	for i, one := range interactions {
		requests[i] = request{"tell that an interaction was confirmed", one.Interaction, func(ctx context.Context, c client.Client) error {
			err := c.SignalWorkflow(ctx, one.Interaction.String(), "", workflows.ConfirmedSignal, nil)
			var none *serviceerror.NotFound
			if errors.As(err, &none) {
				return nil
			}
			return err
		}}
	}
	d.enqueue(requests)
}
