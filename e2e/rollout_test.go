package e2e

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// rollout is a deployment with versioned workers.
type rollout struct {
	*program
	namespace client.Options
	c         client.Client
}

// builds returns the settings of a version.
func builds(id string) []string {
	return []string{"EARSHOT_WORKER_DEPLOYMENT=earshot", "EARSHOT_WORKER_BUILD_ID=" + id}
}

// roll starts a build's worker and makes the build current.
func (o *rollout) roll(build string) *process {
	o.t.Helper()
	w := o.worker(builds(build)...)
	makeCurrent(o.t, o.namespace, build)
	return w
}

// schedule makes an entry whose run waits until 2040.
func (o *rollout) schedule(title string) (entry string) {
	o.t.Helper()
	return o.must(http.MethodPost, "/v1/boards/"+o.board+"/changelog",
		map[string]any{"title": title, "publishedAt": "2040-01-01T09:00:00Z"})
}

// publish moves an entry's publication into the past and waits until its run has ended.
func (o *rollout) publish(entry string) {
	o.t.Helper()
	o.must(http.MethodPatch, "/v1/changelog/"+entry, map[string]any{"publishedAt": "2020-01-01T09:00:00Z"})
	require.Eventually(o.t, func() bool {
		return o.describe(entry).GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}, afterKill, pollInterval)
}

// retry makes the next attempt of a delivery immediately, instead of in an hour.
func (o *rollout) retry(delivery string) {
	o.t.Helper()
	update, err := o.c.UpdateWorkflow(o.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: delivery, UpdateName: workflows.RetryNowUpdate, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(o.t, err)
	require.NoError(o.t, update.Get(o.t.Context(), nil))
}

func (o *rollout) describe(id string) *workflow.WorkflowExecutionInfo {
	o.t.Helper()
	d, err := o.c.DescribeWorkflowExecution(o.t.Context(), id, "")
	require.NoError(o.t, err)
	return d.GetWorkflowExecutionInfo()
}

// build returns the build that made the last step of a run.
func (o *rollout) build(id string) string {
	o.t.Helper()
	return o.describe(id).GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

// TestOpenRunsGoOnWithANewBuildAndGoBackToTheOneBefore follows docs/upgrading.md. Both builds run
// side by side until the new one is current, and then the reverse.
func TestOpenRunsGoOnWithANewBuildAndGoBackToTheOneBefore(t *testing.T) {
	tier.Slow(t, "runs two builds side by side")
	t.Parallel()
	r, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	o := &rollout{
		program:   newProgram(t, append(settingsOf(namespace), "EARSHOT_WEBHOOK_RETRY_DELAYS=1h,1h,1h,1h")...),
		namespace: namespace, c: dial(t, namespace),
	}
	o.serveAlone(builds("a")...)
	o.subscribe(r)
	failFirst(r)
	a := o.roll("a")
	entry, later := o.schedule("v2"), o.schedule("v3")
	post := o.postOf(twice + "first with a")
	delivery := r.Await(t, 1)[0].DeliveryID()

	b := o.roll("b")
	require.Zero(t, a.signal(syscall.SIGTERM), "a has nothing left to do but to end")
	o.retry(delivery)
	r.Await(t, 2)
	o.publish(entry)
	require.Equal(t, []string{"b", "b", "a"}, []string{o.build(delivery), o.build(entry), o.build(later)},
		"a run moves at its next step")
	back := o.postOf(twice + "first with b")
	delivery = r.Await(t, 3)[2].DeliveryID()

	o.roll("a")
	require.Zero(t, b.signal(syscall.SIGTERM))
	o.retry(delivery)
	r.Await(t, 4)
	o.publish(later)
	require.Equal(t, []string{"a", "a"}, []string{o.build(delivery), o.build(later)})
	requireNoFailedTask(t, o.c, awaitDeliveryRuns(t, o.c))
	requireNoFailedTask(t, o.c, runs(t, o.c, "WorkflowType = 'publish_changelog'"))
	require.Equal(t, map[string]int{post: 2, back: 2}, arrived(t, r))
}
