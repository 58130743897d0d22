package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// The test locks the tables of some parts, so the first try of each fails. The part "streaks" reads a
// table that deliveries read, too, and has no lock of its own.
func TestAPartOfTheSweepThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	database, r := testkit.ImpatientDatabase(t), testkit.NewReceiver(t)
	// Nothing listens on port 1, so the predecessor commits and never reaches Temporal.
	dead := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &client.Options{HostPort: "127.0.0.1:1"}})
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	require.NoError(t, dispatch.EnsureSchedules(t.Context(), app.Temporal))
	require.NoError(t, app.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule).
		Pause(t.Context(), client.SchedulePauseOptions{}))
	app.Runs(t, "WorkflowId = '"+workflows.SweepSchedule+"-at-start' AND ExecutionStatus = 'Completed'", 1)
	app.Runs(t, "WorkflowType = '"+workflows.SweepOutboxName+"' AND ExecutionStatus = 'Running'", 0)
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	received := 0
	for parts, tables := range map[string]string{
		"entries, recoveries, subject requests": "changelog_entries, recoveries, subject_requests",
		"backfills, interactions, subscribers":  "contact_backfills, interactions, subscriber_updates",
	} {
		t.Run(parts, func(t *testing.T) {
			seed(t, dead, r)
			received++
			tx, err := c.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = tx.Exec(t.Context(), "LOCK TABLE "+tables)
			require.NoError(t, err)
			run, err := app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: publicid.NewEvent().String(), TaskQueue: workflows.MainQueue,
			}, workflows.SweepOutboxName, activities.SweepParams{})
			require.NoError(t, err)
			r.Await(t, received)
			require.Eventually(t, func() bool {
				d, err := app.Temporal.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
				again := 0
				for _, a := range d.GetPendingActivities() {
					if a.GetAttempt() > 1 {
						again++
					}
				}
				return err == nil && again == 3 && len(d.GetPendingActivities()) == 3
			}, testkit.Wait, 10*time.Millisecond, "the parts are tried again, and the others have ended")
			require.NoError(t, tx.Rollback(t.Context()))
			var result activities.SweepResult
			require.NoError(t, run.Get(t.Context(), &result))
			require.Equal(t, activities.SweepResult{NeverStarted: 1}, result)
		})
	}
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
