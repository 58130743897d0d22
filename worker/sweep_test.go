package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/worker"
	"earshot/workflows"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithWorker(worker.Module), apptest.Waiting(6)) }

// seed makes a tenant with a webhook on the receiver and one post.
func seed(t *testing.T, app *apptest.App, r *testkit.Receiver) *apptest.Tenant {
	t.Helper()
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	n.Register(t, r, "post.created")
	n.ID(t, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	return n
}

// startSweep starts a run of the sweep.
func startSweep(t *testing.T, app *apptest.App) client.WorkflowRun {
	t.Helper()
	run, err := app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: publicid.NewEvent().String(), TaskQueue: workflows.MainQueue,
	}, workflows.SweepOutboxName, activities.SweepParams{})
	require.NoError(t, err)
	return run
}

// sweep runs the sweep once.
func sweep(t *testing.T, app *apptest.App) activities.SweepResult {
	t.Helper()
	var result activities.SweepResult
	require.NoError(t, startSweep(t, app).Get(t.Context(), &result))
	return result
}

// makeOverdue moves the next attempt of a delivery into the past.
func makeOverdue(t *testing.T, app *apptest.App, delivery string, by time.Duration) {
	t.Helper()
	id, err := publicid.Parse[publicid.Delivery](delivery)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		tag, err := app.Pool.Exec(t.Context(), `UPDATE deliveries SET next_attempt_at = now() - make_interval(secs => $1)
			WHERE id = $2 AND attempt_count = 1 AND status = 'pending' AND lease_until IS NULL`, by.Seconds(), id.UUID())
		require.NoError(collect, err)
		require.EqualValues(collect, 1, tag.RowsAffected())
	}, testkit.Wait, testkit.Tick)
}

// withoutTemporal starts a service that commits and never reaches Temporal, because nothing listens on port 1.
func withoutTemporal(t *testing.T, database string) *apptest.App {
	t.Helper()
	return apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &client.Options{HostPort: "127.0.0.1:1"}})
}

func TestANewProcess(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	predecessor := withoutTemporal(t, database)
	delivered := testkit.NewReceiver(t)
	seed(t, predecessor, delivered)

	published, writer := testkit.NewReceiver(t), predecessor.Tenant(t)
	writer.Register(t, published, "changelog.published")
	log := "/v1/boards/" + writer.ID(t, "/v1/boards", map[string]any{"name": "Ideas"}) + "/changelog"
	for title, at := range map[string]time.Time{"due": time.Now().Add(time.Second), "later": time.Now().Add(time.Hour)} {
		writer.ID(t, log, map[string]any{"title": title, "publishedAt": at})
	}

	recovering := predecessor.Tenant(t)
	hook := "/v1/webhooks/" + recovering.Register(t, testkit.NewReceiver(t), "post.created")
	recovery := recovering.ID(t, hook+"/recover", map[string]any{"since": time.Now().Add(-time.Hour)})

	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	t.Run("delivers the pending deliveries of its predecessor", func(t *testing.T) {
		require.NoError(t, delivered.Await(t, 1)[0].Invalid)
	})
	t.Run("publishes an entry whose schedule was lost", func(t *testing.T) {
		require.Eventually(t, func() bool {
			sweep(t, app)
			return len(published.All()) > 0
		}, testkit.Wait, 100*time.Millisecond)
		require.Contains(t, string(published.Await(t, 1)[0].Body), `"slug":"due"`)
	})
	t.Run("starts a recovery whose start was lost", func(t *testing.T) {
		completed(t, recovering, hook+"/recoveries/"+recovery)
		require.Zero(t, sweep(t, app).Restarted, "it has ended")
	})
}

// TestASweepThatIsStillOpenDoesNotStandInForALaterOne leaves a sweep open without a worker, as a
// process does that is killed during it. The schedule starts no sweep in the test.
func TestASweepThatIsStillOpenDoesNotStandInForALaterOne(t *testing.T) {
	t.Parallel()
	database, temporal, r := testkit.Database(t), testkit.Namespace(t), testkit.NewReceiver(t)
	waiting := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal})
	require.NoError(t, dispatch.EnsureSchedules(t.Context(), waiting.Temporal))
	require.NoError(t, waiting.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule).
		Pause(t.Context(), client.SchedulePauseOptions{}))
	require.NoError(t, dispatch.SweepNow(t.Context(), waiting.Temporal, time.Now()))
	seed(t, withoutTemporal(t, database), r)
	apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal, Worker: true})
	require.NoError(t, r.Await(t, 1)[0].Invalid)
}

// overdueDelivery makes a delivery whose second attempt is overdue. Its run is open in the namespace of
// this service only.
func overdueDelivery(t *testing.T, by time.Duration) (database string, r *testkit.Receiver, id string) {
	t.Helper()
	database, r = testkit.Database(t), testkit.NewReceiver(t)
	r.Answer(func(n int, _ testkit.Received) int { return map[bool]int{true: 500, false: 200}[n == 1] })
	app := apptest.Start(t, apptest.Options{
		DatabaseURL: database, Worker: true, Environ: []string{hours},
	})
	seed(t, app, r)
	id = r.Await(t, 1)[0].DeliveryID()
	makeOverdue(t, app, id, by)
	return database, r, id
}

func TestTheSweepStartsARunThatWasLost(t *testing.T) {
	t.Parallel()
	database, r, id := overdueDelivery(t, time.Hour)
	// Another namespace doesn't contain the run.
	apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	require.Equal(t, id, r.Await(t, 2)[1].DeliveryID())
}

func TestTheSweepLeavesOpenRunsAlone(t *testing.T) {
	t.Parallel()
	d := newDying(t)
	makeOverdue(t, d.app, d.id, time.Hour)
	require.Equal(t, activities.SweepResult{}, sweep(t, d.app))
	require.Len(t, d.receiver.All(), 1)
}

// completed returns when a recovery is completed.
func completed(t *testing.T, n *apptest.Tenant, recovery string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, "completed", n.Make(t, http.MethodGet, recovery, nil)["status"])
	}, testkit.Wait, testkit.Tick)
}

func TestTheSweepStopsARecoveryWhoseRunWasTerminated(t *testing.T) {
	t.Parallel()
	database, temporal := testkit.Database(t), testkit.Namespace(t)
	// Without a worker the run waits.
	waiting := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal})
	n := waiting.Tenant(t)
	hook := "/v1/webhooks/" + n.Register(t, testkit.NewReceiver(t), "post.created")
	other := "/v1/webhooks/" + n.Register(t, testkit.NewReceiver(t), "post.created")
	window := map[string]any{"since": time.Now().Add(-time.Hour)}
	ended, open := n.ID(t, hook+"/recover", window), n.ID(t, other+"/recover", window)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, id := range []string{ended, open} {
			_, err := waiting.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
			require.NoError(c, err)
		}
	}, testkit.Wait, testkit.Tick)
	require.NoError(t, waiting.Temporal.TerminateWorkflow(t.Context(), ended, "", "enough"))
	// The open run stays open because its queue has no worker. A run that ends during the sweep
	// might be restarted for nothing.
	require.NoError(t, waiting.Temporal.TerminateWorkflow(t.Context(), open, "", "moves"))
	_, err := waiting.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: open, TaskQueue: "nobody"},
		workflows.RecoverWebhookName, activities.RecoverParams{})
	require.NoError(t, err)
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal, Worker: true})
	require.Zero(t, sweep(t, app).Restarted)
	stopped := n.Make(t, http.MethodGet, hook+"/recoveries/"+ended, nil)
	require.Equal(t, "stopped", stopped["status"])
	require.Equal(t, "canceled", stopped["stoppedReason"])
	require.Equal(t, "running", n.Make(t, http.MethodGet, other+"/recoveries/"+open, nil)["status"])
}

func TestTheWorkerWaitsForItsNamespaceToBeSetUp(t *testing.T) {
	t.Parallel()
	logs := testkit.NewLogs()
	// The namespace "default" of the tests' Temporal has no search attributes.
	temporal := testkit.Namespace(t)
	temporal.Namespace = client.DefaultNamespace
	apptest.Start(t, apptest.Options{Worker: true, Temporal: &temporal, DatabaseURL: testkit.SharedDatabase(t), Logs: logs.Logger()})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Contains(c, logs.String(), fmt.Sprintf("namespace %s lacks the search attributes", client.DefaultNamespace))
		require.Contains(c, logs.String(), "run `earshot temporal setup`")
	}, testkit.Wait, testkit.Tick)
}

// The test renames the tables of the parts, so all tries of each fail. The part "streaks" reads a table
// that deliveries read, too.
func TestAPartOfTheSweepThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	database, r := testkit.Database(t), testkit.NewReceiver(t)
	dead := withoutTemporal(t, database)
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	require.NoError(t, dispatch.EnsureSchedules(t.Context(), app.Temporal))
	require.NoError(t, app.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule).
		Pause(t.Context(), client.SchedulePauseOptions{}))
	require.NoError(t, app.Swept(t.Context()))
	app.Runs(t, "WorkflowType = '"+workflows.SweepOutboxName+"' AND ExecutionStatus = 'Running'", 0)
	seed(t, dead, r)
	away := []string{"changelog_entries", "recoveries", "subject_requests", "contact_backfills", "interactions", "subscriber_updates"}
	for _, table := range away {
		_, err := app.Pool.Exec(t.Context(), "ALTER TABLE "+table+" RENAME TO away_"+table)
		require.NoError(t, err)
	}
	run := startSweep(t, app)
	r.Await(t, 1)
	require.Error(t, run.Get(t.Context(), nil))
	completed, tries := 0, []int32{}
	events := app.Temporal.GetWorkflowHistory(t.Context(), run.GetID(), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	started := map[int64]int32{}
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			started[e.GetEventId()] = a.GetAttempt()
		}
		if a := e.GetActivityTaskFailedEventAttributes(); a != nil {
			tries = append(tries, started[a.GetStartedEventId()])
		}
		if e.GetActivityTaskCompletedEventAttributes() != nil {
			completed++
		}
	}
	require.Equal(t, slices.Repeat([]int32{3}, len(away)), tries, "each part that failed is tried three times by its own activity")
	require.Equal(t, 3, completed, "the deliveries, the other parts, and the end of terminated runs")
}

// A locked table makes its part wait. The lock timeout is longer than the part's share of the time.
func TestAPartOfTheSweepThatWaitsLeavesTimeForTheOthers(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Worker: true})
	tx, err := app.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE recoveries")
	require.NoError(t, err)
	const queue = "sweeps of a test"
	w := sdk.New(app.Temporal, queue, sdk.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (result activities.SweepResult, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: workflows.MainQueue, StartToCloseTimeout: 8 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		parts := activities.SweepParams{Parts: []string{"entries", "recoveries", "streaks"}}
		err = workflow.ExecuteActivity(ctx, activities.SweepName, parts).Get(ctx, &result)
		return result, err
	}, workflow.RegisterOptions{Name: "sweep"})
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "sweep")
	require.NoError(t, err)
	var result activities.SweepResult
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, activities.SweepResult{Failed: []string{"recoveries"}}, result)
}

// withoutVisibility is a connection to Temporal whose queries for lists fail, as they do while the
// visibility store is away.
func withoutVisibility(t *testing.T) *client.Options {
	t.Helper()
	options := testkit.Namespace(t)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
			if strings.HasPrefix(method, "/"+workflowservice.WorkflowService_ServiceDesc.ServiceName+"/List") {
				return status.Error(codes.InvalidArgument, "the visibility store is away") // a code that the SDK does not repeat
			}
			return call(ctx, method, request, reply, c, o...)
		}))
	return &options
}

func TestTheSweepFindsLostDeliveriesWhileTemporalsVisibilityStoreIsAway(t *testing.T) {
	t.Parallel()
	database, r, id := overdueDelivery(t, time.Minute) // the list is trusted for five minutes
	// Another namespace doesn't contain the run.
	apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true, Temporal: withoutVisibility(t)})
	require.Equal(t, id, r.Await(t, 2)[1].DeliveryID())
}
