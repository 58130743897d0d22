package workflows_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"earshot/workflows"
)

func TestARunFailsWhenADeliveryFailedForGoodAndNamesIt(t *testing.T) {
	t.Parallel()
	g := newGroup(t, grouping.Start(t), nil, []int{500, 500, 500, 500, 500})
	err := g.over(t, g.run)
	var failed *temporal.ApplicationError
	require.True(t, errors.As(err, &failed), "%v", err)
	require.Equal(t, "DeliveryFailed", failed.Type())
	var ids []string
	require.NoError(t, failed.Details(&ids))
	require.Equal(t, g.deliveries[1:], ids)
	requireShown(t, g, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, "failed")
}

func TestARunCompletesWhenEverythingWasDelivered(t *testing.T) {
	t.Parallel()
	g := newGroup(t, grouping.Start(t), nil, []int{500})
	require.NoError(t, g.over(t, g.run))
	requireShown(t, g, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "succeeded")
}

// requireShown checks Temporal's list of the group's run after its end.
func requireShown(t *testing.T, g *group, of enumspb.WorkflowExecutionStatus, status string) {
	t.Helper()
	for _, id := range g.deliveries {
		run := g.app.Runs(t, fmt.Sprintf("DeliveryID = '%s' AND DeliveryStatus = '%s'", id, status), 1)[0]
		require.Equal(t, of, run.GetStatus())
	}
	g.app.Runs(t, fmt.Sprintf("OrganizationID = '%s' AND EventType = 'post.created' AND DeliveryStatus = '%s'",
		g.tenant.Organization.ID, status), 1)
	g.app.Runs(t, fmt.Sprintf("OrganizationID = '%s' AND DeliveryStatus = 'pending'", g.tenant.Organization.ID), 0)
}

func TestAnOperatorFindsAPendingDeliveryAndSeesItsNextAttempt(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{503}, nil)
	g.waits(t, g.run, 2)
	g.app.Runs(t, fmt.Sprintf("WebhookID = '%s' AND DeliveryStatus = 'pending'", g.webhook), 1)
	waiting := g.due(t)
	require.Contains(t, g.details(t, g.run), fmt.Sprintf("**pending**, attempt 2 at %s; last answer: 503", waiting))
	require.Contains(t, g.details(t, g.run), "**succeeded**, at attempt 1; last answer: 200")

	status := make(chan int)
	g.receiver.Answer(held(t, 2, status, answers()))
	retrying, err := g.ask(t, g.run, workflows.RetryNowUpdate)
	require.NoError(t, err)
	g.receiver.Await(t, 2)
	require.Contains(t, g.details(t, g.run), "**pending**, attempt 2 is under way; last answer: 503")
	status <- http.StatusServiceUnavailable
	told(t, retrying)
	g.update(t, g.run, workflows.GiveUpUpdate)
	require.Error(t, g.over(t, g.run))
	details := g.details(t, g.run)
	require.Contains(t, details, "1 succeeded, 0 pending, 1 failed, 0 gone")
	require.Contains(t, details, "**failed**, at attempt 3; last answer: given_up")
	require.NotContains(t, details, g.receiver.URL)
}

func TestRetriesAreDueAtWholeSecondsOfTheirRunSoThatThoseOfManyRunsAreSpread(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, []int{500}, nil)
	g.waits(t, g.run, 2)
	began := g.event(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)
	for _, d := range g.status(t.Context(), t, g.run)[:2] {
		require.Zero(t, d.DueAt.Sub(began)%time.Second, "began at %s, due at %s", began, d.DueAt)
	}
}

// event returns the time of the run's first event of a type.
func (g *group) event(t *testing.T, of enumspb.EventType) time.Time {
	t.Helper()
	for events := g.app.Temporal.GetWorkflowHistory(t.Context(), g.run, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == of {
			return event.GetEventTime().AsTime()
		}
	}
	require.Fail(t, "no such event")
	return time.Time{}
}

// due returns the time at which the first delivery is due, as operators see it.
func (g *group) due(t *testing.T) string {
	t.Helper()
	for _, d := range g.status(t.Context(), t, g.run) {
		if d.DueAt != nil {
			return d.DueAt.UTC().Format("2006-01-02 15:04:05 UTC")
		}
	}
	require.Fail(t, "nothing is due")
	return ""
}
