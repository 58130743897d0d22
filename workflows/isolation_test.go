package workflows_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	earshotworker "earshot/worker"
	"earshot/workflows"
)

// posts makes n events from several concurrent callers.
func (b *bundle) posts(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	const callers = 10
	for range callers {
		all.Go(func() {
			for range n / callers {
				b.post(t)
			}
		})
	}
	all.Wait()
}

// rows waits until the number of the organization's deliveries that a condition selects is within a range.
func (b *bundle) rows(t *testing.T, condition string, least, most int) {
	t.Helper()
	require.EventuallyWithT(t, func(a *assert.CollectT) {
		var found int
		require.NoError(a, b.app.Pool.QueryRow(t.Context(), "SELECT count(*) FROM deliveries WHERE organization_id = $1 AND "+condition,
			b.tenant.Organization.ID.UUID()).Scan(&found))
		require.GreaterOrEqual(a, found, least)
		require.LessOrEqual(a, found, most)
	}, testkit.Wait, testkit.Tick)
}

// hanging makes the receiver hold every request until the test ends.
func (b *bundle) hanging(t *testing.T) {
	t.Helper()
	b.receiver.Answer(func(int, testkit.Received) int { <-t.Context().Done(); return http.StatusOK })
}

// TestAThousandDeliveriesToAHangingReceiverDelayNoOtherReceiver has its own Temporal server. SQLite has
// one connection, and a thousand starts keep it busy for so long that the lists of other tests time out.
func TestAThousandDeliveriesToAHangingReceiverDelayNoOtherReceiver(t *testing.T) {
	tier.Slow(t, "starts a Temporal server and a thousand deliveries")
	t.Parallel()
	engine := testkit.NamespaceWith(t)
	b := newBundle(t, alone(t, apptest.Options{Worker: true, Temporal: &engine}))
	b.hanging(t)
	b.posts(t, 1000)
	// Each delivery is being attempted, or waits for its next attempt or its turn.
	b.rows(t, "workflow_id IS NULL", 0, 0)

	healthy := testkit.NewReceiver(t)
	b.tenant.Register(t, healthy, "contact.created")
	healthy.Answer(answers(500))
	b.tenant.ID(t, "/v1/contacts", map[string]any{"name": "Ada"})
	// The second attempt comes through the later queue.
	healthy.Await(t, 2)
	b.rows(t, "status = 'succeeded'", 1, 1)
}

func TestAPostponedDeliveryHasADueTimeAndIsNotStartedAgain(t *testing.T) {
	tier.Slow(t, "holds 200 deliveries")
	t.Parallel()
	// The attempts must fill the slots before the first one times out.
	b := newBundle(t, alone(t, apptest.Options{Worker: true, Decorate: []any{apptest.PatientSender}}))
	b.hanging(t)
	b.posts(t, 200)
	b.rows(t, "workflow_id IS NULL", 0, 0)
	// 64 of the 200 can be in flight at a time.
	b.rows(t, "attempt_count = 0 AND next_attempt_at > created_at + interval '5 seconds'", 1, 200-64)

	var found activities.SweepResult
	require.NoError(t, b.startSweep(t).Get(t.Context(), &found))
	require.Zero(t, found)
}

func TestRetriesOfSimultaneousFailuresAreSpreadAndTheAPIShowsTheirTimes(t *testing.T) {
	t.Parallel()
	b := setup(t, apptest.Options{Worker: true, Environ: []string{hours}})
	const together = 60
	all := make(chan struct{})
	b.receiver.Answer(func(n int, _ testkit.Received) int {
		if n == together {
			close(all)
		}
		<-all
		return http.StatusInternalServerError
	})
	before := time.Now()
	b.posts(t, together)
	var due []time.Time
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		due = nil
		log := b.tenant.Do(t, http.MethodGet, "/v1/webhooks/"+b.webhook+"/deliveries?limit=200", nil)
		for _, d := range log.Body["data"].([]any) {
			text, _ := d.(map[string]any)["nextAttemptAt"].(string)
			at, err := time.Parse(time.RFC3339, text)
			require.NoError(c, err)
			if at.After(before.Add(time.Hour)) {
				due = append(due, at)
			}
		}
		require.Len(c, due, together)
	}, testkit.Wait, testkit.Tick)
	slices.SortFunc(due, time.Time.Compare)
	// The turns are 10 ms apart. The time for the records may have moved the ends a little.
	require.Greater(t, due[together-1].Sub(due[0]), 400*time.Millisecond)
}

func TestLaterAttemptsAreChargedToTheOrganization(t *testing.T) {
	t.Parallel()
	// In a leased namespace, the queue may still have a task of an earlier test.
	temporal := testkit.NewNamespace(t)
	b := setup(t, apptest.Options{Temporal: &temporal}) // without a worker, except for the one of the first round
	first := worker.New(b.app.Temporal, workflows.MainQueue, worker.Options{})
	earshotworker.Register(first)
	for name, does := range delivers(t, b) {
		first.RegisterActivityWithOptions(does, activity.RegisterOptions{Name: name})
	}
	require.NoError(t, first.Start())
	t.Cleanup(first.Stop)
	b.receiver.Answer(answers(500))
	b.post(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
	defer cancel()
	task, err := b.app.Temporal.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: b.app.Connection.Namespace(), TaskQueue: &taskqueue.TaskQueue{Name: workflows.LaterQueue},
	})
	require.NoError(t, err)
	require.Equal(t, activities.AttemptLaterName, task.GetActivityType().GetName())
	require.Equal(t, b.tenant.Organization.ID.String(), task.GetPriority().GetFairnessKey())
}

// TestAnOrganizationAtItsRetryLimitDelaysNoOthersInItsRun makes 40 groups of
// one organization wait for hanging receivers. Then it starts a run with one of those deliveries
// and one of another organization, which fails once.
func TestAnOrganizationAtItsRetryLimitDelaysNoOthersInItsRun(t *testing.T) {
	tier.Slow(t, "holds 40 groups of deliveries")
	t.Parallel()
	database := testkit.Database(t)
	busy := setup(t, apptest.Options{
		Worker: true, DatabaseURL: database, Environ: []string{"EARSHOT_DELIVERY_GROUP_MAX=1"}, Decorate: []any{apptest.PatientSender},
	})
	require.NoError(t, busy.app.Swept(t.Context()))
	second := testkit.NewReceiver(t)
	busy.tenant.Register(t, second, "post.created")
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the receivers' own cleanup, which waits for their answers
	for _, r := range []*testkit.Receiver{busy.receiver, second} {
		var failed sync.Map
		r.Answer(func(_ int, got testkit.Received) int {
			if _, again := failed.LoadOrStore(got.DeliveryID(), true); again {
				<-release
			}
			return http.StatusInternalServerError
		})
	}
	busy.posts(t, 20)
	held := busy.receiver.Await(t, 40)[0].DeliveryID()
	second.Await(t, 40)

	// Nothing listens on port 1, so this process commits and never reaches Temporal.
	quiet := setup(t, apptest.Options{DatabaseURL: database, Temporal: &client.Options{HostPort: "127.0.0.1:1"}})
	quiet.receiver.Answer(answers(500))
	quiet.post(t)
	pending := func(b *bundle, delivery string) change.PendingDelivery {
		id, err := publicid.Parse[publicid.Delivery](delivery)
		require.NoError(t, err)
		webhook, err := publicid.Parse[publicid.Webhook](b.webhook)
		require.NoError(t, err)
		return change.PendingDelivery{
			ID: id, Webhook: webhook, Organization: b.tenant.Organization.ID, EventType: "post.created",
		}
	}
	dispatcher := dispatch.New(busy.app.Connection, 2, testkit.Log(t))
	dispatcher.Deliver([]change.PendingDelivery{
		pending(busy, held), pending(quiet, fmt.Sprint(quiet.delivery(t, "pending")["id"])),
	})
	quiet.receiver.Await(t, 2)
	// The retry came while all deliveries of the busy organization were still under way.
	busy.rows(t, "attempt_count > 1", 0, 0)
}
