package workflows_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"earshot/internal/publicid"
	"earshot/workflows"
)

// ask sends an update as `temporal workflow update start` does, and returns when the run has
// accepted it.
func (b *bundle) ask(t *testing.T, run, update string, of ...any) (client.WorkflowUpdateHandle, error) {
	t.Helper()
	return b.app.Temporal.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateName: update, Args: of, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
}

// update sends an update that must succeed, and waits for its result. For each delivery it returns
// the status, the number of the attempt, and the last answer.
func (b *bundle) update(t *testing.T, run, update string, of ...any) []string {
	t.Helper()
	handle, err := b.ask(t, run, update, of...)
	require.NoError(t, err)
	return told(t, handle)
}

func told(t *testing.T, handle client.WorkflowUpdateHandle) []string {
	t.Helper()
	var all []workflows.DeliveryStatus
	require.NoError(t, handle.Get(t.Context(), &all))
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = fmt.Sprintf("%s %d %s", d.Status, d.Attempt, d.Answer)
	}
	return texts
}

// row returns a delivery as the API shows it.
func (b *bundle) row(t *testing.T, id string) map[string]any {
	t.Helper()
	parsed, err := publicid.Parse[publicid.Delivery](id)
	require.NoError(t, err)
	d, err := b.app.Store.Client().Delivery.Get(b.tenant.Context(t.Context()), parsed)
	require.NoError(t, err)
	return b.tenant.Make(t, http.MethodGet, "/v1/webhooks/"+d.WebhookID.String()+"/deliveries/"+id, nil)
}

func TestAnOperatorMakesTheNextAttemptAtOnceAndLearnsItsOutcome(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500, 503})
	require.Equal(t, g.deliveries[0], g.run, "a group of one")
	g.waits(t, g.run, 2)
	require.Equal(t, []string{"pending 3 503"}, g.update(t, g.run, workflows.RetryNowUpdate, g.run))
	require.Equal(t, []string{"succeeded 3 200"}, g.update(t, g.run, workflows.RetryNowUpdate))
	require.NoError(t, g.over(t, g.run))
	require.Len(t, g.row(t, g.run)["attempts"], 3)
	require.Equal(t, []int{3}, g.requests())
}

func TestRetryNowAttemptsTheNamedDeliveryOfAGroupOnly(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, []int{500}, nil)
	g.waits(t, g.run, 2)
	require.Equal(t, []string{"succeeded 2 200"}, g.update(t, g.run, workflows.RetryNowUpdate, g.deliveries[1]))
	require.Equal(t, []int{1, 2, 1}, g.requests())
	require.Equal(t, "pending", g.row(t, g.deliveries[0])["status"])
	require.Equal(t, []string{"succeeded 2 200"}, g.update(t, g.run, workflows.RetryNowUpdate), "what still waits")
	require.NoError(t, g.over(t, g.run))
}

func TestAnUpdateThatIsAboutNothingIsRefusedAndSaysWhy(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, nil)
	g.waits(t, g.run, 2)
	status := make(chan int)
	g.receivers[0].Answer(held(t, 2, status, answers()))
	refused := func(update, why string, of ...any) {
		t.Helper()
		handle, err := g.ask(t, g.run, update, of...)
		require.NoError(t, err)
		require.ErrorContains(t, handle.Get(t.Context(), nil), why)
	}
	other := publicid.NewDelivery().String()
	ended := "delivery " + g.deliveries[1] + " isn't one that "
	refused(workflows.RetryNowUpdate, "this run doesn't look after a delivery "+other, other)
	refused(workflows.GiveUpUpdate, "this run doesn't look after a delivery "+other, other)
	refused(workflows.RetryNowUpdate, ended+"waits for its next attempt: see the query status", g.deliveries[1])
	refused(workflows.GiveUpUpdate, ended+"is pending: see the query status", g.deliveries[1])
	refused(workflows.GiveUpUpdate, "a delivery "+strings.Repeat("x", 40)+"…", strings.Repeat("x", 1000))

	first, err := g.ask(t, g.run, workflows.RetryNowUpdate)
	require.NoError(t, err)
	g.receivers[0].Await(t, 2)
	refused(workflows.RetryNowUpdate, "no delivery of this run waits for its next attempt")
	refused(workflows.RetryNowUpdate, "delivery "+g.deliveries[0]+" isn't one that waits", g.deliveries[0])
	status <- http.StatusOK
	require.Equal(t, []string{"succeeded 2 200"}, told(t, first))
	require.NoError(t, g.over(t, g.run))
	accepted := count(t, g.app.Temporal, g.run, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
	require.Equal(t, 1, accepted, "what is refused leaves nothing in the history")
}

func TestADeliveryThatIsGivenUpHasFailedAndIsSentNoMore(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500})
	g.waits(t, g.run, 2)
	require.Equal(t, []string{"failed 2 given_up"}, g.update(t, g.run, workflows.GiveUpUpdate, g.run))
	require.ErrorContains(t, g.over(t, g.run), "1 of 1 deliveries failed for good")
	givenUp(t, g.row(t, g.run), 1)
	require.Equal(t, []int{1}, g.requests())
}

// givenUp requires that a row was given up after the number of attempts.
func givenUp(t *testing.T, row map[string]any, attempts int) {
	t.Helper()
	require.Equal(t, "failed given_up", fmt.Sprint(row["status"], " ", row["lastError"]))
	require.NotNil(t, row["failedAt"])
	require.Nil(t, row["nextAttemptAt"])
	require.Len(t, row["attempts"], attempts)
}

func TestGivingUpOneDeliveryOfAGroupLeavesTheOthersToGoOn(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, []int{500})
	g.waits(t, g.run, 2)
	require.Equal(t, []string{"failed 2 given_up"}, g.update(t, g.run, workflows.GiveUpUpdate, g.deliveries[0]))
	require.Equal(t, []string{"succeeded 2 200"}, g.update(t, g.run, workflows.RetryNowUpdate))
	require.ErrorContains(t, g.over(t, g.run), "1 of 2 deliveries failed for good")
	givenUp(t, g.row(t, g.deliveries[0]), 1)
	require.Equal(t, "succeeded", g.row(t, g.deliveries[1])["status"])
	require.Equal(t, []int{1, 2}, g.requests())
}

func TestEverythingThatIsPendingIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, nil, []int{500})
	g.waits(t, g.run, 2)
	require.Equal(t, []string{"failed 2 given_up", "failed 2 given_up"}, g.update(t, g.run, workflows.GiveUpUpdate))
	require.ErrorContains(t, g.over(t, g.run), "2 of 3 deliveries failed for good")
	require.Equal(t, "succeeded", g.row(t, g.deliveries[1])["status"])
}

// TestGivingUpWaitsForTheAttemptThatIsUnderWay sends both updates at the same time: one makes the
// attempt that the other waits for.
func TestGivingUpWaitsForTheAttemptThatIsUnderWay(t *testing.T) {
	t.Parallel()
	for answer, want := range map[int]struct{ retried, ended, lastError string }{
		http.StatusOK:                 {"succeeded 2 200", "succeeded 2 200", "<nil>"},
		http.StatusServiceUnavailable: {"pending 3 503", "failed 3 given_up", "given_up"},
	} {
		t.Run(http.StatusText(answer), func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, patient.Start(t), []int{500})
			g.waits(t, g.run, 2)
			status := make(chan int)
			g.receiver.Answer(held(t, 2, status, answers()))
			retrying, err := g.ask(t, g.run, workflows.RetryNowUpdate)
			require.NoError(t, err)
			g.receiver.Await(t, 2)
			ending, err := g.ask(t, g.run, workflows.GiveUpUpdate)
			require.NoError(t, err)
			status <- answer
			require.Equal(t, []string{want.retried}, told(t, retrying))
			require.Equal(t, []string{want.ended}, told(t, ending))
			require.Equal(t, want.lastError == "<nil>", g.over(t, g.run) == nil)
			row := g.row(t, g.run)
			require.Equal(t, want.lastError, fmt.Sprint(row["lastError"]))
			require.Len(t, row["attempts"], 2)
			require.Equal(t, []int{2}, g.requests())
		})
	}
}
