package webhooks_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestATestOfAWebhook(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is a delivery of webhook.test to this webhook alone":    testToOne,
		"has the payload of the contract":                        testByContract,
		"is refused by a webhook that is disabled":               testDisabled,
		"that is missing is refused":                             testNothing,
		"can't be subscribed to":                                 testUnsubscribable,
		"can be replayed without a subscription to webhook.test": testReplayed,
	})
}

func TestATestIsSentSignedAndRetriedAsAnyDelivery(t *testing.T) {
	t.Parallel()
	n := sending.Start(t).Tenant(t)
	receiver := testkit.NewReceiver(t)
	receiver.Answer(func(i int, _ testkit.Received) int { return map[bool]int{true: 500, false: 200}[i == 1] })
	hook := n.Register(t, receiver, string(event.PostCreated))
	made := n.Make(t, http.MethodPost, "/v1/webhooks/"+hook+"/test", nil)
	for _, got := range receiver.Await(t, 2) {
		require.NoError(t, got.Invalid)
		require.Equal(t, "webhook.test", got.Event.Type)
		require.Equal(t, made["id"], got.DeliveryID())
	}
}

func testToOne(t *testing.T, n *tenant) {
	hook, other := n.Hook(t, event.VoteCreated), n.Hook(t)
	a := n.Do(t, http.MethodPost, hook+"/test", nil)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	made := a.Data()
	require.Equal(t, object{
		"webhookId": hook[len("/v1/webhooks/"):], "eventType": "webhook.test", "status": "pending",
		"attemptCount": json.Number("0"), "nextAttemptAt": made["createdAt"], "lastAttemptAt": nil, "lastResponseStatus": nil,
		"lastError": nil, "durationMs": nil, "deliveredAt": nil, "failedAt": nil, "replayOf": nil,
	}, apptest.Without(made, "id", "eventId", "createdAt"))
	require.Equal(t, []any{made}, n.Do(t, http.MethodGet, hook+"/deliveries?eventType=webhook.test", nil).Body["data"])
	require.Empty(t, n.Walk(t, other+"/deliveries", "50", nil))
}

func testByContract(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	made := n.Make(t, http.MethodPost, hook+"/test", nil)
	apptest.ByContract(t, n.Recorded(t))
	shown := n.Get(t, hook)
	require.Equal(t, object{
		"event": "webhook.test", "organizationId": n.Organization.ID.String(),
		"webhook": object{"id": shown["id"], "createdAt": shown["createdAt"]},
	}, n.Get(t, hook+"/deliveries/"+made["id"].(string))["payload"])
}

func testDisabled(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	n.Patch(t, hook, object{"enabled": false})
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, hook+"/test", nil)
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"reason": "webhook_disabled"}, a.Details())
}

func testNothing(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	theirs := stranger.Hook(t)
	unchanged := stranger.Watch(t)
	for _, hook := range []string{theirs, "/v1/webhooks/" + publicid.NewWebhook().String()} {
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, hook+"/test", nil)
	}
	unchanged(t)
}

func testUnsubscribable(t *testing.T, n *tenant) {
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/webhooks", object{
		"url": "https://example.com", "events": []string{"post.created", "webhook.test"},
	})
	require.Equal(t, []string{"events[1]"}, a.Fields())
}

func testReplayed(t *testing.T, n *tenant) {
	hook := n.Hook(t, event.VoteCreated)
	made := n.Make(t, http.MethodPost, hook+"/test", nil)
	again := n.replay(t, hook+"/deliveries/"+made["id"].(string))
	require.Equal(t, "webhook.test", again["eventType"])
	require.Equal(t, made["eventId"], again["eventId"])
	n.Patch(t, hook, object{"enabled": false})
	n.Refused(t, "ERR_CONFLICT", http.MethodPost, hook+"/deliveries/"+made["id"].(string)+"/replay", nil)
}
