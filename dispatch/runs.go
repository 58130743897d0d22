package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/workflows"
)

const (
	// The number of workflows in one query. By default, a namespace allows ten list calls and a
	// thousand describe calls per second.
	listAtOnce = 500
	// serverIdentity is the identity in terminations by the server itself, for example at the
	// limit of a history.
	serverIdentity = "history-service"
)

// RunStates returns the state of each workflow's last run. Most runs are usually open, and a list
// query finds these. Its index may lag behind, so the other runs are described one by one.
func (d *Dispatcher) RunStates(ctx context.Context, workflowIDs []string) (map[string]activities.RunState, error) {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return nil, err
	}
	states := make(map[string]activities.RunState, len(workflowIDs))
	for some := range slices.Chunk(workflowIDs, listAtOnce) {
		query := "ExecutionStatus = 'Running' AND WorkflowId IN ('" + strings.Join(some, "', '") + "')"
		err := list(ctx, c, query, func(page []*workflowpb.WorkflowExecutionInfo) error {
			for _, info := range page {
				states[info.GetExecution().GetWorkflowId()] = activities.RunOpen
			}
			return nil
		})
		if err != nil { // the visibility store may be away while Temporal works
			d.log.WarnContext(ctx, "the open runs could not be listed, so each is looked up", "error", err)
			break
		}
	}
	return states, describeEach(ctx, c, workflowIDs, states)
}

// RunStatesForSure is RunStates without the list query, which may lag behind.
func (d *Dispatcher) RunStatesForSure(ctx context.Context, workflowIDs []string) (map[string]activities.RunState, error) {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return nil, err
	}
	states := make(map[string]activities.RunState, len(workflowIDs))
	return states, describeEach(ctx, c, workflowIDs, states)
}

// mostFailures is the number of failed lookups in a row after which describeEach stops. A single run
// that can't be described hides no others, and a Temporal that is down isn't asked for thousands.
const mostFailures = 3

// describeEach adds the states of the runs that are not in states yet. It returns the last error, and
// has then added the other states.
func describeEach(ctx context.Context, c client.Client, workflowIDs []string, states map[string]activities.RunState) (last error) {
	failures := 0
	for _, id := range workflowIDs {
		if _, ok := states[id]; ok {
			continue
		}
		state, err := runState(ctx, c, id)
		if err == nil {
			states[id], failures = state, 0
			continue
		}
		last = err
		if failures++; failures == mostFailures {
			break
		}
	}
	return last
}

func runState(ctx context.Context, c client.Client, workflowID string) (activities.RunState, error) {
	d, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return activities.RunOver, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "describe the workflow")
	}
	info := d.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return activities.RunOpen, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return activities.RunTerminated, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return terminatedBy(ctx, c, info.GetExecution())
	default:
		return activities.RunOver, nil
	}
}

// terminatedBy distinguishes a termination by an operator from one by the server.
func terminatedBy(ctx context.Context, c client.Client, run *commonpb.WorkflowExecution) (activities.RunState, error) {
	end := c.GetWorkflowHistory(ctx, run.GetWorkflowId(), run.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for end.HasNext() {
		event, err := end.Next()
		if err != nil {
			return 0, errors.Wrap(err, "read who terminated a run")
		}
		if event.GetWorkflowExecutionTerminatedEventAttributes().GetIdentity() == serverIdentity {
			return activities.RunOver, nil
		}
	}
	return activities.RunTerminated, nil
}

// list calls do with each page of the query's results. It stops at the first error.
func list(ctx context.Context, c client.Client, query string, do func([]*workflowpb.WorkflowExecutionInfo) error) error {
	ask := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
	for {
		page, err := c.ListWorkflow(ctx, ask)
		if err != nil {
			return errors.Wrap(err, "list runs")
		}
		if err := do(page.GetExecutions()); err != nil {
			return err
		}
		if ask.NextPageToken = page.GetNextPageToken(); len(ask.NextPageToken) == 0 {
			return nil
		}
	}
}

// TerminatedRuns calls do with each page of the runs of deliver_webhooks that were terminated after
// since. It stops at the first error.
func (d *Dispatcher) TerminatedRuns(ctx context.Context, since time.Time, do func([]activities.TerminatedRun) error) error {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return err
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Terminated' AND CloseTime > '%s'",
		workflows.DeliverWebhooksName, since.UTC().Format(time.RFC3339))
	return list(ctx, c, query, func(page []*workflowpb.WorkflowExecutionInfo) error {
		found := make([]activities.TerminatedRun, len(page))
		for i, info := range page {
			found[i] = activities.TerminatedRun{WorkflowID: info.GetExecution().GetWorkflowId(), Deliveries: deliveriesOf(info)}
		}
		return do(found)
	})
}

// deliveriesOf reads the delivery ids from the search attribute. It skips other values, which a
// foreign client may have written.
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
