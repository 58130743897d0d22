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

// RunSubjectRequests queues exports and erasures for their start and returns at once.
func (d *Dispatcher) RunSubjectRequests(running []change.RunningSubjectRequest) {
	enqueueEach(d, "data-subject request", running, func(one change.RunningSubjectRequest) fmt.Stringer { return one.Request }, startSubjectRequest)
}

// startSubjectRequest leaves a run that is open alone; a closed one is followed by another, because
// the row decides what is still to be done. Temporal hears of nothing but the ids of the receipt and
// of the organization.
func startSubjectRequest(ctx context.Context, c client.Client, r change.RunningSubjectRequest) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    r.Request.String(),
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.OrganizationIDs.ValueSet([]string{r.Organization.String()})),
		Priority:              fairTo(r.Organization),
		StaticSummary:         "exports or erases a person",
	}, workflows.SubjectRequestName, activities.SubjectParams{Request: r.Request})
	return err
}
