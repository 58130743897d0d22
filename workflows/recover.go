package workflows

import (
	"context"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/feedback"
)

// Recover queues recoveries for their start and returns at once.
func (s *Starter) Recover(recoveries []feedback.Recover) {
	errands := make([]errand, len(recoveries))
	for i, r := range recoveries {
		errands[i] = errand{"start a recovery", r.Recovery, func(ctx context.Context, c client.Client) error {
			return startRecovery(ctx, c, r)
		}}
	}
	s.send(errands)
}

// startRecovery leaves a run that is open alone; a closed one is followed by
// another, because the row decides what is still to be done.
func startRecovery(ctx context.Context, c client.Client, r feedback.Recover) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    r.Recovery.String(),
		TaskQueue:             MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			webhookIDs.ValueSet([]string{r.Webhook.String()}),
			organizationIDs.ValueSet([]string{r.Organization.String()}),
		),
		StaticSummary: "replays what failed at a webhook",
	}, RecoverWebhookName, activities.RecoverParams{Recovery: r.Recovery})
	return err
}

// WasTerminated reports whether an operator ended the last run of a workflow,
// without a word to it.
func (s *Starter) WasTerminated(ctx context.Context, workflowID string) (bool, error) {
	status, err := s.statusOf(ctx, workflowID)
	return status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, err
}

// statusOf is that of the last run, unspecified where Temporal knows none.
func (s *Starter) statusOf(ctx context.Context, workflowID string) (enumspb.WorkflowExecutionStatus, error) {
	c, err := s.temporal.Client(ctx)
	if err != nil {
		return 0, err
	}
	d, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return 0, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "describe the workflow")
	}
	return d.GetWorkflowExecutionInfo().GetStatus(), nil
}
