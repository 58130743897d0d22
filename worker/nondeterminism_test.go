package worker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// A worker has a build whose code for an open run makes other commands than the history has. The run
// stands still, which this metric alone reports (alert EarshotRunsStandStill).
func TestARunOfANondeterministicBuildIsCounted(t *testing.T) {
	tier.Slow(t, "waits for the timeout of a workflow task that a stopped worker got")
	t.Parallel()
	database, namespace := testkit.Database(t), testkit.Namespace(t)
	var id string
	t.Run("the old build", func(t *testing.T) { // ends with its worker
		app := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &namespace, Worker: true})
		n := app.Tenant(t)
		board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
		id = n.ID(t, "/v1/boards/"+board+"/changelog", map[string]any{"title": "Dark mode", "publishedAt": time.Now().Add(time.Hour)})
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			history := app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0)
			events := 0
			for history.HasNext() {
				_, err := history.Next()
				require.NoError(c, err)
				events++
			}
			require.Greater(c, events, 9, "the run waits for its timer")
		}, testkit.Wait, testkit.Tick)
	})
	app := measured(t, apptest.Options{DatabaseURL: database, Temporal: &namespace})
	// Otherwise the next workflow task first waits for the old worker.
	_, err := app.Temporal.WorkflowService().ResetStickyTaskQueue(t.Context(), &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: namespace.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	require.NoError(t, err)
	w := sdkworker.New(app.Temporal, workflows.MainQueue, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ activities.PublishParams) error {
		return workflow.Sleep(ctx, time.Hour) // the history begins with an activity
	}, workflow.RegisterOptions{Name: workflows.PublishChangelogName})
	require.NoError(t, w.Start())
	stop := sync.OnceFunc(w.Stop)
	t.Cleanup(stop)
	require.NoError(t, app.Temporal.SignalWorkflow(t.Context(), id, "", workflows.RescheduledSignal, nil))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Regexp(c, `temporal_workflow_task_execution_failed_total\{.*failure_reason="NonDeterminismError".*workflow_type="publish_changelog"\} [1-9]`,
			scraped(c, app, "/metrics"))
	}, testkit.Wait, testkit.Tick)
	d, err := app.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, "Running", d.GetWorkflowExecutionInfo().GetStatus().String(), "the run stands still and has not failed")

	// The cure of the runbook: a worker with matching code goes on with the run.
	stop()
	fixed := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &namespace, Worker: true})
	require.NoError(t, fixed.Temporal.CancelWorkflow(t.Context(), id, ""))
	require.True(t, temporal.IsCanceledError(fixed.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)))
}
