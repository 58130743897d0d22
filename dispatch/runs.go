package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/workflows"
)

// RunState tells what Temporal knows of a workflow's last run.
func (d *Dispatcher) RunState(ctx context.Context, workflowID string) (activities.RunState, error) {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return 0, err
	}
	described, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return activities.RunUnknown, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "describe the workflow")
	}
	switch described.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return activities.RunOpen, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return activities.RunTerminated, nil
	default:
		return activities.RunClosed, nil
	}
}

// TerminatedRuns calls do for each run of deliver_webhooks that was terminated
// since, until one returns an error.
func (d *Dispatcher) TerminatedRuns(ctx context.Context, since time.Time, do func(activities.TerminatedRun) error) error {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return err
	}
	ask := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Terminated' AND CloseTime > '%s'", workflows.DeliverWebhooksName, since.UTC().Format(time.RFC3339),
	)}
	for {
		page, err := c.ListWorkflow(ctx, ask)
		if err != nil {
			return errors.Wrap(err, "list terminated runs")
		}
		for _, info := range page.GetExecutions() {
			run := activities.TerminatedRun{WorkflowID: info.GetExecution().GetWorkflowId(), Deliveries: deliveriesOf(info)}
			if err := do(run); err != nil {
				return err
			}
		}
		if ask.NextPageToken = page.GetNextPageToken(); len(ask.NextPageToken) == 0 {
			return nil
		}
	}
}

// deliveriesOf reads the search attribute. What isn't a list of ids was put there by
// somebody else and is left out.
func deliveriesOf(info *workflowpb.WorkflowExecutionInfo) []publicid.Delivery {
	payload := info.GetSearchAttributes().GetIndexedFields()[workflows.DeliveryIDs.GetName()]
	var texts []string
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &texts) != nil {
		return nil
	}
	var ids []publicid.Delivery
	for _, text := range texts {
		if id, err := publicid.Parse[publicid.Delivery](text); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
