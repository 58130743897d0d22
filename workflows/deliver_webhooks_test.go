package workflows_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/worker"
	"earshot/workflows"
)

func TestMain(m *testing.M) {
	apptest.Main(m, apptest.WithWorker(worker.Module), apptest.Waiting(6))
}

// Services that tests share.
var (
	// working has a run for each delivery. A test finds it by the delivery's id, though other tests make
	// deliveries at the same time.
	working = apptest.Shared{
		Worker: true, Mails: true, Environ: []string{"EARSHOT_DELIVERY_GROUP_MAX=1", "EARSHOT_PUBLIC_ORIGIN=" + origin},
	}
	// grouping and patient form groups, so tests make their events there by bundle.first. In patient, no
	// second attempt is due during a test.
	grouping = apptest.Shared{Worker: true}
	patient  = apptest.Shared{Worker: true, Environ: []string{hours}}
)

// bundle is a tenant of a running service, with one board and one receiver.
type bundle struct {
	app      *apptest.App
	tenant   *apptest.Tenant
	receiver *testkit.Receiver
	board    string
	webhook  string
}

func setup(t *testing.T, o apptest.Options) *bundle {
	t.Helper()
	return newBundle(t, apptest.Start(t, o))
}

func newBundle(t *testing.T, app *apptest.App) *bundle {
	t.Helper()
	b := &bundle{app: app, receiver: testkit.NewReceiver(t)}
	b.tenant = b.app.Tenant(t)
	b.board = b.tenant.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	b.webhook = b.tenant.Register(t, b.receiver, "post.created")
	return b
}

// post makes an event.
func (b *bundle) post(t *testing.T) {
	t.Helper()
	b.tenant.ID(t, "/v1/boards/"+b.board+"/posts", map[string]any{"title": "Dark mode"})
}

// delivery returns the webhook's only delivery when it has the given status.
func (b *bundle) delivery(t *testing.T, status string) map[string]any {
	t.Helper()
	var found map[string]any
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, _ := b.tenant.Do(t, http.MethodGet, "/v1/webhooks/"+b.webhook+"/deliveries", nil).Body["data"].([]any)
		require.Len(c, list, 1)
		row, _ := list[0].(map[string]any)
		require.Equal(c, status, row["status"])
		id, _ := row["id"].(string)
		found = b.tenant.Make(t, http.MethodGet, "/v1/webhooks/"+b.webhook+"/deliveries/"+id, nil)
	}, testkit.Wait, testkit.Tick)
	return found
}

// answers returns the statuses in order, then 200.
func answers(statuses ...int) func(int, testkit.Received) int {
	return func(n int, _ testkit.Received) int {
		if n <= len(statuses) {
			return statuses[n-1]
		}
		return http.StatusOK
	}
}

func TestAPostArrivesAsASignedWebhook(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.post(t)
	got := b.receiver.Await(t, 1)[0]
	require.NoError(t, got.Invalid)
	require.Equal(t, "post.created", got.Event.Type)
	d := b.delivery(t, "succeeded")
	require.Equal(t, got.DeliveryID(), d["id"])
	require.Len(t, d["attempts"], 1)
}

func TestAFailedAttemptIsMadeAgainWithTheSameBytes(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(answers(500, 302, 200))
	b.post(t)
	got := b.receiver.Await(t, 3)
	for _, r := range got {
		require.NoError(t, r.Invalid)
		require.Equal(t, got[0].DeliveryID(), r.DeliveryID())
		require.Equal(t, got[0].Body, r.Body)
	}
	d := b.delivery(t, "succeeded")
	attempts, _ := d["attempts"].([]any)
	require.Len(t, attempts, 3)
	for i, want := range []any{"http_status", "redirect", nil} {
		a, _ := attempts[i].(map[string]any)
		require.Equal(t, want, a["error"], "attempt %d", i+1)
	}
}

func TestADeliveryFailsForGoodAfterFiveAttempts(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(answers(500, 500, 500, 500, 500))
	b.post(t)
	d := b.delivery(t, "failed")
	require.Len(t, d["attempts"], 5)
	require.NotNil(t, d["failedAt"])
	require.Nil(t, d["nextAttemptAt"])
	require.Len(t, b.receiver.All(), 5)
}

func TestTheRetryGoesToTheCorrectedURL(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	fixed := testkit.NewReceiver(t)
	// The first attempt is answered only after the webhook is corrected, so the second can't be too
	// early.
	b.receiver.Answer(func(int, testkit.Received) int {
		b.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+b.webhook, map[string]any{"url": fixed.URL})
		return http.StatusInternalServerError
	})
	b.post(t)
	require.Equal(t, b.receiver.Await(t, 1)[0].DeliveryID(), fixed.Await(t, 1)[0].DeliveryID())
	b.delivery(t, "succeeded")
}

func TestTheDeliveriesOfADisabledWebhookEndAtTheirNextAttempt(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(func(int, testkit.Received) int {
		b.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+b.webhook, map[string]any{"enabled": false})
		return http.StatusInternalServerError
	})
	b.post(t)
	d := b.delivery(t, "failed")
	require.Equal(t, "webhook_disabled", d["lastError"])
	require.Len(t, d["attempts"], 1)
}

func TestTheDeliveriesOfADeletedWebhookEndQuietly(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(func(int, testkit.Received) int {
		b.tenant.Make(t, http.MethodDelete, "/v1/webhooks/"+b.webhook, nil)
		return http.StatusInternalServerError
	})
	b.post(t)
	id := b.receiver.Await(t, 1)[0].DeliveryID()
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	require.Len(t, b.receiver.All(), 1)
	require.Equal(t, "gone", b.status(t.Context(), t, id)[0].Status)
}

func TestAHangingReceiverDelaysNoOtherReceiver(t *testing.T) {
	t.Parallel()
	b := setup(t, apptest.Options{Worker: true})
	hanging := testkit.NewReceiver(t)
	hanging.Answer(func(int, testkit.Received) int { <-t.Context().Done(); return http.StatusOK })
	log := "/v1/webhooks/" + b.tenant.Register(t, hanging, "post.created") + "/deliveries?limit=200"
	// More deliveries than a webhook may have in flight, so that they use all of its slots.
	const posts = 100
	for range posts {
		b.post(t)
	}
	b.receiver.Await(t, posts)
	// On a slow machine some attempts have already timed out, and others took their slots.
	inFlight := len(hanging.All())
	for _, d := range b.tenant.Do(t, http.MethodGet, log, nil).Body["data"].([]any) {
		ended, err := d.(map[string]any)["attemptCount"].(json.Number).Int64()
		require.NoError(t, err)
		inFlight -= int(ended)
	}
	require.LessOrEqual(t, inFlight, 64, "attempts in flight to one webhook")
}

func TestTheStatusQueryTellsWhichAttemptIsNextAndWhen(t *testing.T) {
	t.Parallel()
	b := newBundle(t, patient.Start(t))
	b.receiver.Answer(answers(500))
	id := b.first(t, b.receiver)[0]
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := b.app.Temporal.QueryWorkflow(t.Context(), id, "", workflows.StatusQuery)
		require.NoError(c, err)
		var s workflows.Status
		require.NoError(c, answer.Get(&s))
		require.Len(c, s.Deliveries, 1)
		d := s.Deliveries[0]
		require.Equal(c, "pending", d.Status)
		require.Equal(c, 2, d.Attempt)
		require.Equal(c, "500", d.Answer)
		require.NotNil(c, d.DueAt)
		require.WithinDuration(c, time.Now().Add(time.Hour), *d.DueAt, time.Minute)
	}, testkit.Wait, testkit.Tick)
}

// TestAFastReceiverAndASlowOneOfAGroupDoNotWaitForEachOther has an attempt that ends while a timer
// runs. The run cancels the timer and must not select it again.
func TestAFastReceiverAndASlowOneOfAGroupDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t, apptest.Options{Worker: true, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=4s,1s,1s,1s"}})
	slow := testkit.NewReceiver(t)
	b.tenant.Register(t, slow, "post.created")
	b.receiver.Answer(answers(500))
	slow.Answer(func(n int, _ testkit.Received) int {
		if n > 1 {
			return http.StatusOK
		}
		// This waits for the clock. The first round ends with it, and the other delivery's retry is
		// due then. That retry has as long as the first delay to end before this one's timer.
		<-time.After(4 * time.Second)
		return http.StatusInternalServerError
	})
	b.post(t)
	b.receiver.Await(t, 2)
	id := slow.Await(t, 2)[0].DeliveryID()
	run := b.app.Runs(t, fmt.Sprintf("DeliveryID = '%s'", id), 1)[0].GetExecution().GetWorkflowId()
	require.Contains(t, run, "+1", "both are of one group")
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), run, "").Get(t.Context(), nil))
	// The SDK ends a run that loops, and tries it again. The run may even succeed, because time has
	// passed.
	require.Zero(t, count(t, b.app.Temporal, run, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED))
	require.NotZero(t, count(t, b.app.Temporal, run, enumspb.EVENT_TYPE_TIMER_CANCELED), "or this shows nothing")
	if *record != "" {
		writeHistory(t, b.app.Temporal, workflows.DeliverWebhooksName, "fast_and_slow_receiver", run)
	}
}

func TestAWebhookWithAnUnreadableSecretDelaysNoOtherWebhook(t *testing.T) {
	t.Parallel()
	b := newBundle(t, grouping.Start(t))
	broken := b.tenant.Register(t, testkit.NewReceiver(t), "post.created")
	id, err := publicid.Parse[publicid.Webhook](broken)
	require.NoError(t, err)
	_, err = b.app.Pool.Exec(t.Context(), "UPDATE webhooks SET secret_sealed = 'lost' WHERE id = $1", id.UUID().String())
	require.NoError(t, err)
	b.receiver.Answer(answers(500, 500))
	first := b.first(t, b.receiver)[0]
	run := b.app.Runs(t, fmt.Sprintf("DeliveryID = '%s'", first), 1)[0].GetExecution().GetWorkflowId()
	require.Contains(t, run, "+1", "both are of one group")
	b.receiver.Await(t, 3)
	require.Equal(t, "succeeded", b.delivery(t, "succeeded")["status"])
}

// count returns the number of events of a type in a run's history.
func count(t *testing.T, c client.Client, run string, of enumspb.EventType) int {
	t.Helper()
	n := 0
	for events := c.GetWorkflowHistory(t.Context(), run, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if event.GetEventType() == of {
			n++
		}
	}
	return n
}

func TestAnIdleServiceStartsOneWorkflowPerDeliveryUnderItsOwnID(t *testing.T) {
	t.Parallel()
	b := setup(t, apptest.Options{})
	b.post(t)
	d := b.delivery(t, "pending")
	run := b.app.Runs(t, fmt.Sprintf("WebhookID = '%s' AND EventType = 'post.created'", b.webhook), 1)[0]
	require.Equal(t, d["id"], run.GetExecution().GetWorkflowId())
}

func TestStartingADeliveryTwiceAttemptsItOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.post(t)
	d := b.delivery(t, "succeeded")
	dispatcher := dispatch.New(b.app.Connection, 60, testkit.Log(t))
	id, err := publicid.Parse[publicid.Delivery](fmt.Sprint(d["id"]))
	require.NoError(t, err)
	webhook, err := publicid.Parse[publicid.Webhook](b.webhook)
	require.NoError(t, err)
	dispatcher.Deliver([]change.PendingDelivery{{
		ID: id, Webhook: webhook, Organization: b.tenant.Organization.ID, EventType: "post.created",
	}})
	dispatcher.Drain(t.Context())
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id.String(), "").Get(t.Context(), nil))
	require.Len(t, b.receiver.All(), 1)
}
