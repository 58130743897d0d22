package worker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// manySQL copies the single delivery. Every fiftieth copy has its own lost run. The other copies
// share the run of the first, which is open.
const manySQL = `
INSERT INTO deliveries (id, organization_id, webhook_id, event_id, event_type, status, attempt_count, created_at,
  next_attempt_at, workflow_id)
SELECT gen_random_uuid(), organization_id, webhook_id, event_id, event_type, 'pending', attempt_count, created_at,
  now() - interval '2 hours' + n * interval '1 millisecond', CASE n % 50 WHEN 0 THEN 'lost-' || n ELSE workflow_id END
FROM deliveries, generate_series(1, 100000) n`

// TestASweepOf100000DeliveriesFindsEachThatWasLost uses a disabled webhook, so that lost deliveries
// end as soon as they are restarted. Temporal's SQLite has one connection, and 2,000 restarts keep it
// busy for so long that the lists of other tests time out. So the test has its own server.
func TestASweepOf100000DeliveriesFindsEachThatWasLost(t *testing.T) {
	tier.Slow(t, "writes 100,000 deliveries")
	t.Parallel()
	engine := testkit.NamespaceWith(t)
	d := newDyingAlone(t, &engine)
	require.NoError(t, d.app.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule).
		Pause(t.Context(), client.SchedulePauseOptions{}))
	// A sweep that is still running would find a part of them first.
	require.NoError(t, d.app.Swept(t.Context()))
	d.app.Runs(t, "WorkflowType = '"+workflows.SweepOutboxName+"' AND ExecutionStatus = 'Running'", 0)
	hook := "/v1/webhooks/" + d.row(t).WebhookID.String()
	d.tenant.Make(t, http.MethodPatch, hook, map[string]any{"enabled": false})
	_, err := d.app.Pool.Exec(t.Context(), manySQL)
	require.NoError(t, err)

	run, err := d.app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: publicid.NewEvent().String(), TaskQueue: workflows.MainQueue,
	}, workflows.SweepOutboxName, activities.SweepParams{Grace: 30 * time.Second})
	require.NoError(t, err)
	var result activities.SweepResult
	require.NoError(t, run.Get(t.Context(), &result))
	// An activity that Temporal retries counts only the findings of its last try. The rows below have
	// the findings of all tries.
	require.LessOrEqual(t, result.Lost, 2000)
	require.Positive(t, result.Lost)
	require.Equal(t, activities.SweepResult{Lost: result.Lost}, result)
	// Five activities handle 20,000 deliveries each, and one finds no more. The others are for terminated
	// runs and for the other parts.
	require.Equal(t, 6+1+1, scheduled(t, d.app, run.GetID()))
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		var ended, others int
		require.NoError(collect, d.app.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE last_error = 'webhook_disabled'),
			count(*) FILTER (WHERE status = 'pending') FROM deliveries`).Scan(&ended, &others))
		require.Equal(collect, 2000, ended)
		require.Equal(collect, 98001, others, "with the first")
	}, testkit.Wait, 100*time.Millisecond)
}

// scheduled returns the number of activities of a run.
func scheduled(t *testing.T, app *apptest.App, run string) (n int) {
	t.Helper()
	for events := app.Temporal.GetWorkflowHistory(t.Context(), run, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			n++
		}
	}
	return n
}
