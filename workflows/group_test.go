package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// hours is a schedule whose second attempt is never due during a test.
const hours = "EARSHOT_WEBHOOK_RETRY_DELAYS=1h,1h,1h,1h"

// group is a run of several deliveries: those of one event, each with its own receiver.
type group struct {
	*bundle
	// receivers and deliveries are in the same order.
	receivers  []*testkit.Receiver
	deliveries []string
	// run is the workflow's id.
	run string
}

// newGroup starts a group and returns after its first round. Each receiver answers with its list of
// statuses, then with 200.
func newGroup(t *testing.T, app *apptest.App, statuses ...[]int) *group {
	t.Helper()
	g := &group{bundle: newBundle(t, app)}
	for i, list := range statuses {
		r := g.receiver
		if i > 0 {
			r = testkit.NewReceiver(t)
			g.tenant.Register(t, r, "post.created")
		}
		r.Answer(answers(list...))
		g.receivers = append(g.receivers, r)
	}
	g.deliveries = g.first(t, g.receivers...)
	g.run = g.app.Runs(t, fmt.Sprintf("DeliveryID = '%s'", g.deliveries[0]), 1)[0].GetExecution().GetWorkflowId()
	if more := len(statuses) - 1; more > 0 {
		require.True(t, strings.HasSuffix(g.run, fmt.Sprintf("+%d", more)), "all are of one group: %s", g.run)
	}
	return g
}

// oneEvent lets one test at a time make an event in a service that forms groups. The dispatcher puts
// deliveries of several organizations into one run if they come at the same time.
var oneEvent sync.Mutex

// first makes an event and returns its deliveries, when each receiver has had its first request.
func (b *bundle) first(t *testing.T, receivers ...*testkit.Receiver) (deliveries []string) {
	t.Helper()
	oneEvent.Lock()
	defer oneEvent.Unlock()
	b.post(t)
	for _, r := range receivers {
		deliveries = append(deliveries, r.Await(t, 1)[0].DeliveryID())
	}
	return deliveries
}

// alone starts a service for one test, and returns when the sweep at its start has ended.
func alone(t *testing.T, o apptest.Options) *apptest.App {
	t.Helper()
	app := apptest.Start(t, o)
	require.NoError(t, app.Swept(t.Context()))
	return app
}

// requests returns the number of requests of each receiver.
func (g *group) requests() []int {
	n := make([]int, len(g.receivers))
	for i, r := range g.receivers {
		n[i] = len(r.All())
	}
	return n
}

// status queries a run.
func (b *bundle) status(ctx context.Context, t require.TestingT, run string) []workflows.DeliveryStatus {
	answer, err := b.app.Temporal.QueryWorkflow(ctx, run, "", workflows.StatusQuery)
	require.NoError(t, err)
	var s workflows.Status
	require.NoError(t, answer.Get(&s))
	return s.Deliveries
}

// waits returns when every pending delivery of the run waits for the attempt of that number.
func (b *bundle) waits(t *testing.T, run string, attempt int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, d := range b.status(t.Context(), c, run) {
			if d.Status == "pending" {
				require.Equal(c, attempt, d.Attempt)
				require.NotNil(c, d.DueAt)
			}
		}
	}, testkit.Wait, testkit.Tick)
}

// over waits for the end of a run, and returns an error unless all deliveries succeeded.
func (b *bundle) over(t *testing.T, run string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
	defer cancel()
	err := b.app.Temporal.GetWorkflow(ctx, run, "").Get(ctx, nil)
	require.NoError(t, ctx.Err(), "the run has no end; its history:%s", lastEvents(t, b.app.Temporal, run))
	return err
}

// lastEvents returns a run's history, one event per line, for the output of a failed test.
func lastEvents(t *testing.T, c client.Client, run string) string {
	t.Helper()
	var lines strings.Builder
	for events := c.GetWorkflowHistory(t.Context(), run, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		fmt.Fprintf(&lines, "\n%s %3d %s", event.EventTime.AsTime().Format("15:04:05.000"), event.EventId, event.EventType)
	}
	return lines.String()
}

// held makes a receiver's n-th answer wait for a status from the channel.
func held(t *testing.T, n int, status <-chan int, others func(int, testkit.Received) int) func(int, testkit.Received) int {
	return func(i int, r testkit.Received) int {
		if i == n {
			return testkit.Held(t, status)
		}
		return others(i, r)
	}
}
