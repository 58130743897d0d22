package dispatch

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/workflows"
)

// NotifySubscribers queues organizations for the e-mails to their end-users and returns at once.
func (d *Dispatcher) NotifySubscribers(of []publicid.Organization) {
	enqueueEach(d, "e-mails to end-users", of, func(one publicid.Organization) fmt.Stringer { return one }, notifySubscribers)
}

// notifySubscribers makes a run that is open look again; a closed one is followed by another, because
// the rows decide what is still to be done. Temporal hears of nothing but the organization's id.
func notifySubscribers(ctx context.Context, c client.Client, of publicid.Organization) error {
	_, err := c.SignalWithStartWorkflow(ctx, of.String(), workflows.UpdatedSignal, nil, client.StartWorkflowOptions{
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.OrganizationIDs.ValueSet([]string{of.String()})),
		Priority:              fairTo(of),
		StaticSummary:         "e-mails updates to end-users who agreed",
	}, workflows.NotifySubscribersName, activities.SubscribersParams{Organization: of})
	return err
}
