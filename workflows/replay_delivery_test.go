package workflows_test

import (
	"net/http"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/publicid"
	"earshot/workflows"
)

// replay starts the workflow as the form of the web UI does, and waits for its end.
func (b *bundle) replay(t *testing.T, input ...any) (run client.WorkflowRun, made string, err error) {
	t.Helper()
	run, err = b.app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "by-hand-" + publicid.NewEvent().String(), TaskQueue: workflows.MainQueue,
	}, workflows.ReplayDeliveryName, input...)
	require.NoError(t, err)
	return run, made, run.Get(t.Context(), &made)
}

func TestAnOperatorReplaysADeliveryByItsID(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.post(t)
	first := b.receiver.Await(t, 1)[0]
	b.delivery(t, "succeeded")
	b.app.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(b.tenant.Context(t.Context()))
	run, made, err := b.replay(t, first.DeliveryID())
	require.NoError(t, err)
	second := b.receiver.Await(t, 2)[1]
	require.NoError(t, second.Invalid)
	require.Equal(t, made, second.DeliveryID())
	require.Equal(t, string(first.Body), string(second.Body))
	shown := b.tenant.Make(t, http.MethodGet, "/v1/webhooks/"+b.webhook+"/deliveries/"+made, nil)
	require.Equal(t, first.DeliveryID(), shown["replayOf"])
	require.Contains(t, b.details(t, run.GetID()), "Replayed as `"+made+"`")
	require.NotContains(t, b.told(t, run.GetID()), "Dark mode")
}

func TestAnImpossibleReplayFailsAtOnceWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.post(t)
	id, _ := b.delivery(t, "succeeded")["id"].(string)
	hook := "/v1/webhooks/" + b.webhook
	fails := func(input, kind, message string) {
		t.Helper()
		run, _, err := b.replay(t, input)
		var refused *temporal.ApplicationError
		require.True(t, errors.As(err, &refused), "%v", err)
		require.Equal(t, kind, refused.Type())
		require.Equal(t, message, refused.Message())
		require.True(t, refused.NonRetryable())
		require.Contains(t, b.details(t, run.GetID()), message)
	}
	const noID = `The input is not the id of a delivery, which looks like "dlv_…".`
	fails("", "ERR_VALIDATION", noID)
	fails("everything", "ERR_VALIDATION", noID)
	fails(b.webhook, "ERR_VALIDATION", noID)
	fails(publicid.NewDelivery().String(), "ERR_NOT_FOUND", "There is no such delivery.")
	b.tenant.Make(t, http.MethodPatch, hook, map[string]any{"events": []string{"vote.created"}})
	fails(id, "not_subscribed", "The webhook doesn't subscribe to this event.")
	b.tenant.Make(t, http.MethodPatch, hook, map[string]any{"enabled": false})
	fails(id, "webhook_disabled", "The webhook is disabled.")
	require.Len(t, b.receiver.All(), 1)
}

func TestAReplayOfSomethingThatIsNoTextFailsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	for _, input := range [][]any{{42}, {map[string]any{"delivery": "dlv_1"}}, {}} {
		_, _, err := b.replay(t, input...)
		require.Error(t, err)
	}
}
