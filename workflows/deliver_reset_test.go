package workflows_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// reset resets a run to the end of its n-th workflow task, as the web UI does. 0 is the first task
// and -1 the last.
func (b *bundle) reset(t *testing.T, run string, n int) {
	t.Helper()
	var ends []int64
	for events := b.app.Temporal.GetWorkflowHistory(t.Context(), run, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			ends = append(ends, event.GetEventId())
		}
	}
	if n < 0 {
		n += len(ends)
	}
	_, err := b.app.Temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         b.app.Connection.Namespace(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run},
		Reason:            "a test", RequestId: publicid.NewEvent().String(), WorkflowTaskFinishEventId: ends[n],
	})
	require.NoError(t, err)
}

// resetPoints are the usual choices of an operator.
var resetPoints = map[string]int{"first workflow task": 0, "last workflow task": -1}

func TestResettingAClosedRunResendsOnlyTheFailedDeliveries(t *testing.T) {
	t.Parallel()
	for name, point := range resetPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead := []int{500, 500, 500, 500, 500}
			g := newGroup(t, grouping.Start(t), dead, nil, append(dead, 503))
			require.ErrorContains(t, g.over(t, g.run), "2 of 3 deliveries failed for good")
			g.reset(t, g.run, point)
			require.NoError(t, g.over(t, g.run))
			require.Equal(t, []int{6, 1, 7}, g.requests())
			for i, r := range g.receivers {
				for _, got := range r.All() {
					require.NoError(t, got.Invalid)
					require.Equal(t, g.deliveries[i], got.DeliveryID())
				}
				row := g.row(t, g.deliveries[i])
				require.Equal(t, "succeeded", row["status"])
				require.Nil(t, row["failedAt"])
				requireNumbered(t, row, len(r.All()))
			}
		})
	}
}

// requireNumbered requires that the attempts of a delivery have the numbers 1 to n.
func requireNumbered(t *testing.T, row map[string]any, n int) {
	t.Helper()
	require.Equal(t, fmt.Sprint(n), fmt.Sprint(row["attemptCount"]))
	attempts, _ := row["attempts"].([]any)
	require.Len(t, attempts, n)
	for i, a := range attempts {
		attempt, _ := a.(map[string]any)
		require.Equal(t, fmt.Sprint(i+1), fmt.Sprint(attempt["number"]))
	}
}

func TestADeliveryThatFailsAgainAfterAResetHasFiveFurtherAttempts(t *testing.T) {
	tier.Slow(t, "makes 25 attempts in five runs")
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	b.post(t)
	id := b.receiver.Await(t, 1)[0].DeliveryID()
	require.ErrorContains(t, b.over(t, id), "failed for good")
	requireNumbered(t, b.row(t, id), 5)
	// Each reset starts from the run that the previous one created.
	for i, point := range []int{0, -1, -1, 0} {
		b.reset(t, id, point)
		require.ErrorContains(t, b.over(t, id), "failed for good")
		row := b.row(t, id)
		require.Equal(t, "failed", row["status"])
		requireNumbered(t, row, 5*(i+2))
	}
	require.Len(t, b.receiver.All(), 25)
}

func TestResettingARunThatDeliveredEverythingSendsNothing(t *testing.T) {
	t.Parallel()
	for name, point := range resetPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, grouping.Start(t), []int{500}, nil)
			require.NoError(t, g.over(t, g.run))
			g.reset(t, g.run, point)
			require.NoError(t, g.over(t, g.run))
			require.Equal(t, []int{2, 1}, g.requests())
		})
	}
}

func TestResettingARunInTheMiddleOfItsRetriesAddsNoAttempts(t *testing.T) {
	t.Parallel()
	for name, point := range resetPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, patient.Start(t), []int{500, 500, 500, 500, 500})
			g.waits(t, g.run, 2)
			g.reset(t, g.run, point)
			for n := 2; n <= 5; n++ {
				g.waits(t, g.run, n)
				g.update(t, g.run, workflows.RetryNowUpdate)
			}
			require.ErrorContains(t, g.over(t, g.run), "failed for good")
			requireNumbered(t, g.row(t, g.run), 5)
			require.Equal(t, []int{5}, g.requests())
		})
	}
}

func TestAnAttemptThatIsUnderWayAtAResetCounts(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	status := make(chan int)
	b.receiver.Answer(held(t, 3, status, answers(500, 500, 500, 500, 500)))
	b.post(t)
	id := b.receiver.Await(t, 3)[0].DeliveryID()
	b.reset(t, id, -1)
	status <- http.StatusInternalServerError
	require.ErrorContains(t, b.over(t, id), "failed for good")
	requireNumbered(t, b.row(t, id), 5)
	require.Len(t, b.receiver.All(), 5)
}

func TestResettingARunSendsTheDeliveriesThatAnOperatorGaveUp(t *testing.T) {
	t.Parallel()
	for name, point := range resetPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, patient.Start(t), []int{500, 500}, []int{500})
			g.waits(t, g.run, 2)
			g.update(t, g.run, workflows.GiveUpUpdate)
			require.ErrorContains(t, g.over(t, g.run), "2 of 2 deliveries failed for good")
			g.reset(t, g.run, point)
			g.deliveredAgain(t)
			// The delivery that failed again can be given up again, and stays given up.
			g.update(t, g.run, workflows.GiveUpUpdate, g.deliveries[0])
			require.ErrorContains(t, g.over(t, g.run), "1 of 2 deliveries failed for good")
			givenUp(t, g.row(t, g.deliveries[0]), 2)
			require.Equal(t, []int{2, 2}, g.requests())
		})
	}
}

// deliveredAgain returns when the first delivery waits for its third attempt and the second
// delivery has succeeded at its second.
func (g *group) deliveredAgain(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var all []string
		for _, d := range g.status(t.Context(), c, g.run) {
			all = append(all, fmt.Sprintf("%s %s %d", d.Delivery, d.Status, d.Attempt))
		}
		require.ElementsMatch(c, []string{g.deliveries[0] + " pending 3", g.deliveries[1] + " succeeded 2"}, all)
	}, testkit.Wait, testkit.Tick)
}

func TestACanceledRunResetToItsStartSendsItsGivenUpDeliveries(t *testing.T) {
	t.Parallel()
	g := newGroup(t, patient.Start(t), []int{500})
	g.waits(t, g.run, 2)
	require.NoError(t, g.app.Temporal.CancelWorkflow(t.Context(), g.run, ""))
	require.True(t, temporal.IsCanceledError(g.over(t, g.run)))
	// The run's last workflow task comes after the cancellation.
	g.reset(t, g.run, -1)
	require.True(t, temporal.IsCanceledError(g.over(t, g.run)))
	givenUp(t, g.row(t, g.run), 1)
	g.reset(t, g.run, 0)
	require.NoError(t, g.over(t, g.run))
	require.Equal(t, []int{2}, g.requests())
}
