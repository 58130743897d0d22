package workflows_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

func TestCancelingARunGivesUpItsPendingDeliveries(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500}, nil, []int{500})
	g.waits(t, g.run, 2)
	require.NoError(t, g.app.Temporal.CancelWorkflow(t.Context(), g.run, ""))
	require.True(t, temporal.IsCanceledError(g.over(t, g.run)))
	givenUp(t, g.row(t, g.deliveries[0]), 1)
	givenUp(t, g.row(t, g.deliveries[2]), 1)
	require.Equal(t, "succeeded", g.row(t, g.deliveries[1])["status"])
	require.Equal(t, []int{1, 1, 1}, g.requests())
}

func TestCancelingARunLetsTheAttemptThatIsUnderWayComeToItsEnd(t *testing.T) {
	t.Parallel()
	for answer, want := range map[int]string{
		http.StatusOK:                 "succeeded <nil>",
		http.StatusServiceUnavailable: "failed given_up",
	} {
		for n, which := range map[int]string{1: "first", 2: "second"} {
			t.Run(which+" "+http.StatusText(answer), func(t *testing.T) {
				t.Parallel()
				b := newBundle(t, patient.Start(t))
				status := make(chan int)
				b.receiver.Answer(held(t, n, status, answers(500)))
				id := b.first(t, b.receiver)[0]
				if n == 2 {
					b.waits(t, id, 2)
					_, err := b.ask(t, id, workflows.RetryNowUpdate)
					require.NoError(t, err)
					b.receiver.Await(t, 2)
				}
				require.NoError(t, b.app.Temporal.CancelWorkflow(t.Context(), id, ""))
				status <- answer
				err := b.over(t, id)
				row := b.row(t, id)
				require.Equal(t, want, fmt.Sprint(row["status"], " ", row["lastError"]))
				require.Len(t, row["attempts"], n)
				require.Len(t, b.receiver.All(), n)
				if n == 1 && answer == http.StatusOK {
					require.NoError(t, err, "all was done already")
				} else {
					require.True(t, temporal.IsCanceledError(err), "%v", err)
				}
			})
		}
	}
}

func TestCancelingARunFailsItsPendingUpdates(t *testing.T) {
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
	require.NoError(t, g.app.Temporal.CancelWorkflow(t.Context(), g.run, ""))
	require.ErrorContains(t, retrying.Get(t.Context(), nil), "canceled")
	require.ErrorContains(t, ending.Get(t.Context(), nil), "canceled")
	status <- http.StatusServiceUnavailable
	require.True(t, temporal.IsCanceledError(g.over(t, g.run)))
	givenUp(t, g.row(t, g.run), 2)
}

func TestARunThatIsCanceledBeforeItBeginsMakesNoAttempt(t *testing.T) {
	t.Parallel()
	database, engine := testkit.Database(t), testkit.Namespace(t)
	// There is no worker, so the run is started and waits for its first task.
	b := setup(t, apptest.Options{DatabaseURL: database, Temporal: &engine})
	b.post(t)
	id := fmt.Sprint(b.delivery(t, "pending")["id"])
	b.app.Runs(t, fmt.Sprintf("DeliveryID = '%s'", id), 1)
	require.NoError(t, b.app.Temporal.CancelWorkflow(t.Context(), id, ""))
	apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &engine, Worker: true})
	require.True(t, temporal.IsCanceledError(b.over(t, id)))
	givenUp(t, b.row(t, id), 0)
	require.Empty(t, b.receiver.All())
	if *record != "" {
		writeHistory(t, b.app.Temporal, workflows.DeliverWebhooksName, "canceled_before_it_began", id)
	}
}
