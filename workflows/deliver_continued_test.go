package workflows_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// newLong is a group whose run continues as new after about three attempts. The first delivery
// fails, the second was given up, the third has succeeded. The fifth attempt is hours away.
func newLong(t *testing.T) *group {
	t.Helper()
	engine := testkit.NamespaceWith(t, "limit.historyCount.suggestContinueAsNew=30")
	g := newGroup(t, alone(t, apptest.Options{
		Worker: true, Temporal: &engine, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1h"},
	}), []int{500, 500, 500, 500, 500}, []int{500, 500, 500, 500}, nil)
	g.update(t, g.run, workflows.GiveUpUpdate, g.deliveries[1])
	g.waits(t, g.run, 5)
	return g
}

// firstRun returns the run that was continued.
func (g *group) firstRun(t *testing.T) string {
	t.Helper()
	last, err := g.app.Temporal.DescribeWorkflowExecution(t.Context(), g.run, "")
	require.NoError(t, err)
	first := last.GetWorkflowExecutionInfo().GetFirstRunId()
	require.NotEqual(t, first, last.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	require.NotZero(t, lastOf(t, g, first, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
	return first
}

func TestARunWhoseHistoryBecomesLongGoesOnInANewOneThatKnowsEverything(t *testing.T) {
	t.Parallel()
	g := newLong(t)
	first := g.firstRun(t)
	g.app.Runs(t, fmt.Sprintf("DeliveryID = '%s' AND EventType = 'post.created' AND DeliveryStatus = 'pending' AND "+
		"ExecutionStatus = 'Running'", g.deliveries[1]), 1)
	found := g.status(t.Context(), t, g.run)
	require.Equal(t, "pending 5 500", fmt.Sprint(found[0].Status, " ", found[0].Attempt, " ", found[0].Answer))
	require.Equal(t, "failed given_up", found[1].Status+" "+found[1].Answer)
	require.Equal(t, "succeeded 1 200", fmt.Sprint(found[2].Status, " ", found[2].Attempt, " ", found[2].Answer))
	require.Contains(t, g.details(t, g.run), "1 succeeded, 1 pending, 1 failed, 0 gone")

	require.Equal(t, []string{"failed 5 500"}, g.update(t, g.run, workflows.RetryNowUpdate))
	err := g.over(t, g.run)
	require.ErrorContains(t, err, "2 of 3 deliveries failed for good")
	requireNumbered(t, g.row(t, g.deliveries[0]), 5)
	require.Equal(t, []int{5, 1}, []int{g.requests()[0], g.requests()[2]})
	if *record != "" {
		writeRun(t, g.app.Temporal, workflows.DeliverWebhooksName, "continued_as_new", g.run, first)
		writeRun(t, g.app.Temporal, workflows.DeliverWebhooksName, "goes_on", g.run, "")
	}
}

func TestCancelingAContinuedRunGivesUpItsPendingDeliveries(t *testing.T) {
	tier.Slow(t, "makes a history that continues in a new run")
	t.Parallel()
	g := newLong(t)
	require.NoError(t, g.app.Temporal.CancelWorkflow(t.Context(), g.run, ""))
	require.True(t, temporal.IsCanceledError(g.over(t, g.run)))
	givenUp(t, g.row(t, g.deliveries[0]), 4)
}

// TestAResetOfAContinuedRunSendsItsFailedDeliveriesAgain resets the first run, at its last workflow
// task, which had continued it as new.
func TestAResetOfAContinuedRunSendsItsFailedDeliveriesAgain(t *testing.T) {
	tier.Slow(t, "makes a history that continues in a new run")
	t.Parallel()
	g := newLong(t)
	first := g.firstRun(t)
	g.update(t, g.run, workflows.RetryNowUpdate)
	require.Error(t, g.over(t, g.run))
	_, err := g.app.Temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         g.app.Connection.Namespace(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: g.run, RunId: first},
		Reason:            "a test", RequestId: publicid.NewEvent().String(),
		WorkflowTaskFinishEventId: lastOf(t, g, first, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED),
	})
	require.NoError(t, err)
	require.NoError(t, g.over(t, g.run))
	for _, id := range g.deliveries {
		require.Equal(t, "succeeded", g.row(t, id)["status"])
	}
	require.Equal(t, []int{6, 1}, []int{g.requests()[0], g.requests()[2]})
}

// lastOf returns the id of the last event of a type in a run's history.
func lastOf(t *testing.T, g *group, run string, of enumspb.EventType) (id int64) {
	t.Helper()
	for events := g.app.Temporal.GetWorkflowHistory(t.Context(), g.run, run, false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == of {
			id = event.GetEventId()
		}
	}
	return id
}
