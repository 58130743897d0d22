package dispatch

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// RunRecoveries queues recoveries for their start and returns at once.
func (d *Dispatcher) RunRecoveries(recoveries []change.RunningRecovery) {
	enqueueEach(d, "recovery", recoveries, func(one change.RunningRecovery) fmt.Stringer { return one.Recovery }, startRecovery)
}

// startRecovery leaves a run that is open alone; a closed one is followed by
// another, because the row decides what is still to be done.
func startRecovery(ctx context.Context, c client.Client, r change.RunningRecovery) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    r.Recovery.String(),
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.WebhookIDs.ValueSet([]string{r.Webhook.String()}),
			workflows.OrganizationIDs.ValueSet([]string{r.Organization.String()}),
		),
		Priority:      fairTo(r.Organization),
		StaticSummary: "replays what failed at a webhook",
	}, workflows.RecoverWebhookName, activities.RecoverParams{Recovery: r.Recovery})
	return err
}
