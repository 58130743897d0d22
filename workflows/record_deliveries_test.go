package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// recordDelivery records a delivery whose attempts get the statuses, then 200.
func recordDelivery(name string, statuses ...int) func(*testing.T) {
	return func(t *testing.T) {
		g := newGroup(t, grouping.Start(t), statuses)
		writeHistory(t, g.app.Temporal, workflows.DeliverWebhooksName, name, g.run)
	}
}

// recordGroup records a group whose deliveries end at different attempts.
func recordGroup(t *testing.T) {
	g := newGroup(t, grouping.Start(t),
		nil, []int{500}, []int{500, 500}, []int{500, 500, 500}, []int{500, 500, 500, 500, 500})
	writeHistory(t, g.app.Temporal, workflows.DeliverWebhooksName, "group_with_failures", g.run)
}

// recordUpdate records a group in which an update ends the deliveries that failed at first.
func recordUpdate(name, update string) func(*testing.T) {
	return func(t *testing.T) {
		g := newGroup(t, patient.Start(t), []int{500}, []int{500}, nil)
		g.waits(t, g.run, 2)
		g.update(t, g.run, update, g.deliveries[0])
		g.update(t, g.run, update)
		writeHistory(t, g.app.Temporal, workflows.DeliverWebhooksName, name, g.run)
	}
}

func recordCanceled(t *testing.T) {
	g := newGroup(t, patient.Start(t), []int{500}, nil)
	g.waits(t, g.run, 2)
	require.NoError(t, g.app.Temporal.CancelWorkflow(t.Context(), g.run, ""))
	writeHistory(t, g.app.Temporal, workflows.DeliverWebhooksName, "canceled", g.run)
}

// recordReset records a run that failed, was reset to its end, failed again, and was reset to its
// end once more.
func recordReset(t *testing.T) {
	dead := []int{500, 500, 500, 500, 500}
	g := newGroup(t, grouping.Start(t), append(append(dead, dead...), 500), nil)
	for range 2 {
		require.Error(t, g.over(t, g.run))
		g.reset(t, g.run, -1)
	}
	writeHistory(t, g.app.Temporal, workflows.DeliverWebhooksName, "reset_twice", g.run)
}

// recordSweep records a sweep without findings, and one that gives up the delivery of a terminated
// run.
func recordSweep(t *testing.T) {
	g := newGroup(t, alone(t, apptest.Options{Worker: true, Environ: []string{hours}}), []int{500})
	g.waits(t, g.run, 2)
	g.recordSweep(t, "nothing_to_do", 0)
	require.NoError(t, g.app.Temporal.TerminateWorkflow(t.Context(), g.run, "", "a test"))
	g.app.Runs(t, "ExecutionStatus = 'Terminated'", 1)
	g.recordSweep(t, "given_up", 1)
}

// recordLongSweep records a sweep with more deliveries than one activity handles.
func recordLongSweep(t *testing.T) {
	g := newGroup(t, alone(t, apptest.Options{Worker: true, Environ: []string{hours}}), []int{500})
	g.waits(t, g.run, 2)
	_, err := g.app.Pool.Exec(t.Context(), `INSERT INTO deliveries (id, organization_id, webhook_id, event_id, event_type, created_at,
		next_attempt_at, workflow_id) SELECT gen_random_uuid(), organization_id, webhook_id, event_id, event_type, created_at,
		now() - interval '1 hour', workflow_id FROM deliveries, generate_series(1, 20000)`)
	require.NoError(t, err)
	g.recordSweep(t, "goes_on", 0)
}

// recordFailedPart records a sweep with two parts that fail.
func recordFailedPart(t *testing.T) {
	g := newGroup(t, alone(t, apptest.Options{Worker: true}), nil)
	_, err := g.app.Pool.Exec(t.Context(), "ALTER TABLE recoveries RENAME TO away; ALTER TABLE interactions RENAME TO far_away")
	require.NoError(t, err)
	run := g.startSweep(t)
	require.Error(t, run.Get(t.Context(), nil))
	writeHistory(t, g.app.Temporal, workflows.SweepOutboxName, "part_fails", run.GetID())
}

func (b *bundle) startSweep(t *testing.T) client.WorkflowRun {
	t.Helper()
	run, err := b.app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: publicid.NewDelivery().String(), TaskQueue: workflows.MainQueue,
	}, workflows.SweepOutboxName, activities.SweepParams{})
	require.NoError(t, err)
	return run
}

func (g *group) recordSweep(t *testing.T, name string, givenUp int) {
	t.Helper()
	run := g.startSweep(t)
	var result activities.SweepResult
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, givenUp, result.GivenUp)
	writeHistory(t, g.app.Temporal, workflows.SweepOutboxName, name, run.GetID())
}
