package workflows_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/worker"
	"earshot/workflows"
)

// The test runs the workflow on a clock that skips timers, with the activities of production. Rows,
// requests and receiver are real. On a server the run would take more than an hour.
func TestADeadReceiverIsTriedFiveTimesOnTheScheduleOfTheSpecification(t *testing.T) {
	t.Parallel()
	for version, params := range map[string]func([]workflows.DeliveryRef) workflows.DeliverParams{
		"in the current version": workflows.NewDeliverParams,
		"in version 0": func(of []workflows.DeliveryRef) workflows.DeliverParams {
			return workflows.DeliverParams{Deliveries: of}
		},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			followsTheSchedule(t, params)
		})
	}
}

// environment returns Temporal's environment for a single workflow. By default it gives a step of the workflow one
// second and the whole test three, which a busy machine exceeds.
func environment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(testkit.Log(t)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: testkit.Wait})
	env.SetTestTimeout(testkit.Wait)
	return env
}

func followsTheSchedule(t *testing.T, params func([]workflows.DeliveryRef) workflows.DeliverParams) {
	t.Helper()
	// The service has no worker, so the run that it starts waits.
	b := setup(t, apptest.Options{Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=30s,2m,10m,1h"}})
	env := environment(t)
	worker.Register(env)
	for name, does := range delivers(t, b) {
		env.RegisterActivityWithOptions(does, activity.RegisterOptions{Name: name})
	}
	var mu sync.Mutex
	var ends []time.Time
	b.receiver.Answer(func(int, testkit.Received) int {
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, env.Now())
		return http.StatusInternalServerError
	})
	b.post(t)
	id, err := publicid.Parse[publicid.Delivery](b.delivery(t, "pending")["id"].(string))
	require.NoError(t, err)
	webhook, err := publicid.Parse[publicid.Webhook](b.webhook)
	require.NoError(t, err)

	env.ExecuteWorkflow(workflows.DeliverWebhooksName, params([]workflows.DeliveryRef{{ID: id, Webhook: webhook}}))
	require.ErrorContains(t, env.GetWorkflowError(), "1 of 1 deliveries failed for good")
	require.Len(t, b.receiver.All(), 5)
	requireNumbered(t, b.delivery(t, "failed"), 5)
	for i, delay := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour} {
		// Attempts are never early. They can be late by the rest of a second and the duration of an
		// attempt.
		between := ends[i+1].Sub(ends[i])
		require.GreaterOrEqual(t, between, delay-100*time.Millisecond, "before attempt %d", i+2)
		require.Less(t, between, delay+3*time.Second, "before attempt %d", i+2)
	}
}

// delivers returns the activities that a delivery needs, with the service's settings.
func delivers(t *testing.T, b *bundle) map[string]any {
	t.Helper()
	c := b.app.Config
	box := seal.New()
	for _, k := range c.SecretKeys {
		require.NoError(t, box.Add(k.ID, k.Key))
	}
	sender := send.New(send.Options{AllowCIDRs: c.WebhookAllowCIDRs, AllowHTTP: c.WebhookAllowHTTP})
	t.Cleanup(sender.Close)
	dispatcher := dispatch.New(b.app.Connection, 1, testkit.Log(t))
	d := activities.NewDeliveries(b.app.Store, sender, box, dispatcher, activities.DeliveryOptions{
		Delays: c.WebhookRetryDelays, Log: testkit.Log(t),
	})
	return map[string]any{
		activities.AttemptFirstName: d.AttemptFirst, activities.AttemptLaterName: d.AttemptLater,
		activities.ReviveName: d.Revive,
	}
}
