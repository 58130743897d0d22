package worker_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/ent/db"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// dying is a delivery that failed at its first attempt. The second attempt is an hour away.
type dying struct {
	app      *apptest.App
	tenant   *apptest.Tenant
	receiver *testkit.Receiver
	// id is the id of the delivery and of its run.
	id string
}

// hours are delays that outlast a test.
const hours = "EARSHOT_WEBHOOK_RETRY_DELAYS=1h,1h,1h,1h"

// inTurns is for tests of the sweep and the retention, which look at the rows of all organizations.
var inTurns = apptest.Shared{Worker: true, Turns: true, Environ: []string{hours}}

func newDying(t *testing.T) *dying {
	t.Helper()
	return newDyingIn(t, inTurns.Start(t))
}

// newDyingAlone has a service of its own.
func newDyingAlone(t *testing.T, engine *client.Options) *dying {
	t.Helper()
	return newDyingIn(t, apptest.Start(t, apptest.Options{Temporal: engine, Worker: true, Environ: []string{hours}}))
}

func newDyingIn(t *testing.T, app *apptest.App) *dying {
	t.Helper()
	d := &dying{app: app, receiver: testkit.NewReceiver(t)}
	d.receiver.Answer(func(n int, _ testkit.Received) int { return map[bool]int{true: 500, false: 200}[n == 1] })
	d.tenant = seed(t, d.app, d.receiver)
	d.id = d.receiver.Await(t, 1)[0].DeliveryID()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, 1, d.row(t).AttemptCount)
		// The first attempt is part of the first workflow task, which ends after the record. Before
		// that, a run has no point to which it can be reset.
		require.NotZero(c, d.firstTaskEnd(t))
	}, testkit.Wait, testkit.Tick)
	return d
}

func (d *dying) row(t *testing.T) *db.Delivery {
	t.Helper()
	id, err := publicid.Parse[publicid.Delivery](d.id)
	require.NoError(t, err)
	row, err := d.app.Store.Client().Delivery.Get(d.app.Store.Across("a test").Context(t.Context()), id)
	require.NoError(t, err)
	return row
}

// terminate ends the run as the web UI does, and returns when Temporal lists it as terminated.
func (d *dying) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, d.app.Temporal.TerminateWorkflow(t.Context(), d.id, "", "enough"))
	d.listed(t)
}

// listed returns when Temporal lists the run as terminated.
func (d *dying) listed(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, err := d.app.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = '%s' AND ExecutionStatus = 'Terminated'", d.id),
		})
		require.NoError(c, err)
		require.Len(c, list.GetExecutions(), 1)
	}, testkit.Wait, testkit.Tick)
}

// requireGivenUp requires that the row was given up.
func (d *dying) requireGivenUp(t *testing.T) {
	t.Helper()
	row := d.row(t)
	require.EqualValues(t, "failed", row.Status)
	require.Equal(t, activities.ErrorGivenUp, *row.LastError)
	require.NotNil(t, row.FailedAt)
	require.Nil(t, row.NextAttemptAt)
	require.Len(t, d.receiver.All(), row.AttemptCount)
}

func TestADeliveryWhoseRunWasTerminatedIsGivenUpLongBeforeItsNextAttempt(t *testing.T) {
	t.Parallel()
	d := newDying(t)
	d.terminate(t)
	// The schedule's own sweep may come first.
	sweep(t, d.app)
	d.requireGivenUp(t)
	require.Equal(t, activities.SweepResult{}, sweep(t, d.app), "it has ended")
}

func TestADeliveryThatIsOverdueIsNotStartedAgainWhenItsRunWasTerminated(t *testing.T) {
	t.Parallel()
	d := newDying(t)
	makeOverdue(t, d.app, d.id, time.Hour)
	d.terminate(t)
	sweep(t, d.app)
	d.requireGivenUp(t)
	run, err := d.app.Temporal.DescribeWorkflow(t.Context(), d.id, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, run.Status)
}

// TestADeliveryWhoseRunTheServerTerminatedIsSentAndNotGivenUp fills a history to its limit with
// signals that the workflow ignores.
func TestADeliveryWhoseRunTheServerTerminatedIsSentAndNotGivenUp(t *testing.T) {
	t.Parallel()
	engine := testkit.NamespaceWith(t, "limit.historyCount.error=60")
	d := newDyingAlone(t, &engine)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		err := d.app.Temporal.SignalWorkflow(t.Context(), d.id, "", "nothing", nil)
		var over *serviceerror.NotFound
		require.True(c, errors.As(err, &over), "%v", err)
	}, testkit.Wait, time.Millisecond)
	d.listed(t)
	require.Equal(t, activities.SweepResult{}, sweep(t, d.app))
	require.EqualValues(t, "pending", d.row(t).Status)
	makeOverdue(t, d.app, d.id, time.Hour)
	// The schedule's own sweep may come first.
	sweep(t, d.app)
	require.Equal(t, d.id, d.receiver.Await(t, 2)[1].DeliveryID())
	require.NoError(t, d.app.Temporal.GetWorkflow(t.Context(), d.id, "").Get(t.Context(), nil))
	require.EqualValues(t, "succeeded", d.row(t).Status)
}

func TestADeliveryThatIsGivenUpWithItsRunIsSentByAReset(t *testing.T) {
	t.Parallel()
	d := newDying(t)
	d.terminate(t)
	sweep(t, d.app)
	d.requireGivenUp(t)
	d.reset(t)
	require.NoError(t, d.app.Temporal.GetWorkflow(t.Context(), d.id, "").Get(t.Context(), nil))
	require.EqualValues(t, "succeeded", d.row(t).Status)
	require.Len(t, d.receiver.All(), 2)
}

func TestTheSweepLeavesARunAloneThatWasReset(t *testing.T) {
	t.Parallel()
	d := newDying(t)
	d.reset(t) // terminates the open run and creates another
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := d.app.Temporal.QueryWorkflow(t.Context(), d.id, "", workflows.StatusQuery)
		require.NoError(c, err)
		var status workflows.Status
		require.NoError(c, answer.Get(&status))
		require.NotNil(c, status.Deliveries[0].DueAt, "it waits for the second attempt")
	}, testkit.Wait, testkit.Tick)
	makeOverdue(t, d.app, d.id, time.Hour)
	require.Equal(t, activities.SweepResult{}, sweep(t, d.app))
	require.EqualValues(t, "pending", d.row(t).Status)
}

// reset resets the run to the end of its first workflow task.
func (d *dying) reset(t *testing.T) {
	t.Helper()
	_, err := d.app.Temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         d.app.Connection.Namespace(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: d.id},
		Reason:            "a test", RequestId: publicid.NewEvent().String(), WorkflowTaskFinishEventId: d.firstTaskEnd(t),
	})
	require.NoError(t, err)
}

// firstTaskEnd returns the event that completed the first workflow task, or 0 before that.
func (d *dying) firstTaskEnd(t *testing.T) int64 {
	t.Helper()
	for events := d.app.Temporal.GetWorkflowHistory(t.Context(), d.id, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId()
		}
	}
	return 0
}

// The attempt ends at the latest a minute after its start, so the sweep follows its answer: on a busy
// machine a sweep alone can take a minute. A sweep during the attempt finds the lease
// (TestALeasedDeliveryOrOneOfAnotherRunIsNotAbandoned in internal/delivery).
func TestAnAttemptThatIsUnderWayWhenItsRunIsTerminatedCounts(t *testing.T) {
	t.Parallel()
	r, status := testkit.NewReceiver(t), make(chan int)
	r.Answer(func(n int, _ testkit.Received) int {
		if n == 1 {
			return http.StatusInternalServerError
		}
		return testkit.Held(t, status)
	})
	app := apptest.Start(t, apptest.Options{
		Worker: true, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,1h,1h,1h"}, Decorate: []any{apptest.PatientSender},
	})
	seed(t, app, r)
	d := &dying{app: app, receiver: r, id: r.Await(t, 2)[0].DeliveryID()}
	require.NoError(t, app.Temporal.TerminateWorkflow(t.Context(), d.id, "", "enough"))
	status <- http.StatusOK
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.EqualValues(c, "succeeded", d.row(t).Status)
	}, testkit.Wait, testkit.Tick)
	d.listed(t)
	require.Equal(t, activities.SweepResult{}, sweep(t, app))
}

func TestARunTerminatedBeforeItsFirstTaskSendsNoDelivery(t *testing.T) {
	t.Parallel()
	database, engine, r := testkit.Database(t), testkit.Namespace(t), testkit.NewReceiver(t)
	waiting := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &engine})
	seed(t, waiting, r)
	rows, err := delivery.FindOverdue(t.Context(), waiting.Store, 0, delivery.Overdue{}, 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	d := &dying{app: waiting, receiver: r, id: rows[0].ID.String()}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := waiting.Temporal.DescribeWorkflowExecution(t.Context(), d.id, "")
		require.NoError(c, err)
	}, testkit.Wait, testkit.Tick)
	d.terminate(t)
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &engine, Worker: true})
	sweep(t, app)
	d.requireGivenUp(t)
	require.Empty(t, r.All())
}
