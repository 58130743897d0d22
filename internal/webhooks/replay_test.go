package webhooks_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAReplay(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is a new delivery of the same event":                  replayOnce,
		"has the payload of the first delivery, byte for byte": replayBytes,
		"leaves the first delivery as it was":                  replayTouchesNothing,
		"goes to the one webhook":                              replayToOne,
		"can be made of a replay, and of one as often":         replayAgain,
		"can be made of a delivery that succeeded or failed":   replayWhatever,
		"is refused by a webhook that is disabled":             replayDisabled,
		"is refused by a webhook that doesn't subscribe now":   replayUnsubscribed,
		"of a missing delivery is refused":                     replayNothing,
		"by an operator is made once, however often it is run": replayAs,
	})
}

func TestAReplayIsSentAsTheFirstDeliveryWas(t *testing.T) {
	t.Parallel()
	n := &tenant{sending.Start(t).Tenant(t)}
	receiver := testkit.NewReceiver(t)
	hook := n.Register(t, receiver, string(event.PostCreated))
	n.Post(t)
	first := receiver.Await(t, 1)[0]
	made := n.Make(t, http.MethodPost, "/v1/webhooks/"+hook+"/deliveries/"+first.DeliveryID()+"/replay", nil)
	second := receiver.Await(t, 2)[1]
	require.NoError(t, first.Invalid)
	require.NoError(t, second.Invalid)
	require.Equal(t, string(first.Body), string(second.Body))
	require.Equal(t, made["id"], second.DeliveryID(), "receivers dedupe by it")
	require.NotEqual(t, first.DeliveryID(), second.DeliveryID())
}

// aDelivery makes a webhook that subscribes to everything. It returns its path and the path of its
// first delivery.
func (n *tenant) aDelivery(t *testing.T) (hook, path string) {
	t.Helper()
	hook = "/v1/webhooks/" + n.Listen(t)
	n.Make(t, http.MethodPost, n.Board(t)+"/posts", object{"title": "<b>&amp; \u2028 é 🎉"})
	return hook, hook + "/deliveries/" + n.Walk(t, hook+"/deliveries", "50", func() {})[0]
}

func (n *tenant) replay(t *testing.T, path string) object {
	t.Helper()
	return n.Make(t, http.MethodPost, path+"/replay", nil)
}

func replayOnce(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	old := n.Get(t, path)
	a := n.Do(t, http.MethodPost, path+"/replay", nil)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	made := a.Data()
	require.NotEqual(t, old["id"], made["id"])
	require.Equal(t, object{
		"webhookId": old["webhookId"], "eventId": old["eventId"], "eventType": "post.created", "status": "pending",
		"attemptCount": json.Number("0"), "nextAttemptAt": made["createdAt"], "lastAttemptAt": nil, "lastResponseStatus": nil,
		"lastError": nil, "durationMs": nil, "deliveredAt": nil, "failedAt": nil, "replayOf": old["id"],
	}, apptest.Without(made, "id", "createdAt"))
	apptest.Later(t, made, old, "createdAt")
	log := n.Do(t, http.MethodGet, hook+"/deliveries", nil).Body["data"].([]any)
	require.Equal(t, []any{made, apptest.Without(old, "payload", "attempts")}, log, "newest first")
	require.Len(t, n.Recorded(t), 1, "it is no new event")
}

// payload returns the payload of a delivery, as the log shows it.
func (n *tenant) payload(t *testing.T, path string) string {
	t.Helper()
	var shown struct {
		Data struct{ Payload json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(n.Do(t, http.MethodGet, path, nil).Raw, &shown))
	return string(shown.Data.Payload)
}

func replayBytes(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	post := n.Payloads(t, event.PostCreated)[0]["post"].(object)["id"].(string)
	before := n.payload(t, path)
	n.Patch(t, "/v1/posts/"+post, object{"title": "Another title", "status": "shipped"})
	n.Make(t, http.MethodDelete, "/v1/posts/"+post, nil)
	made := n.replay(t, path)
	require.Equal(t, string(n.Recorded(t)[0].Payload), before)
	require.Equal(t, before, n.payload(t, hook+"/deliveries/"+made["id"].(string)), "whatever became of the post since")
	require.Equal(t, before, n.payload(t, path))
}

func replayTouchesNothing(t *testing.T, n *tenant) {
	_, path := n.aDelivery(t)
	before := n.Do(t, http.MethodGet, path, nil)
	n.replay(t, path)
	require.Equal(t, string(before.Raw), string(n.Do(t, http.MethodGet, path, nil).Raw))
}

func replayToOne(t *testing.T, n *tenant) {
	other := "/v1/webhooks/" + n.Listen(t)
	_, path := n.aDelivery(t)
	n.replay(t, path)
	require.Len(t, n.Walk(t, other+"/deliveries", "50", func() {}), 1, "another webhook's log")
}

func replayAgain(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	first := n.replay(t, path)
	second := n.replay(t, path)
	third := n.replay(t, hook+"/deliveries/"+first["id"].(string))
	require.Equal(t, first["replayOf"], second["replayOf"])
	require.Equal(t, first["id"], third["replayOf"], "it names the delivery that it repeats")
	for _, made := range []object{second, third} {
		require.Equal(t, first["eventId"], made["eventId"])
		require.Equal(t, n.payload(t, path), n.payload(t, hook+"/deliveries/"+made["id"].(string)))
	}
	require.Len(t, n.Walk(t, hook+"/deliveries", "50", func() {}), 4)
}

func replayWhatever(t *testing.T, n *tenant) {
	_, path := n.aDelivery(t)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	client.Delivery.Update().SetStatus("succeeded").SetAttemptCount(1).ClearNextAttemptAt().SetDeliveredAt(n.Owner.CreatedAt).ExecX(ctx)
	require.Equal(t, "pending", n.replay(t, path)["status"])
	client.Delivery.Update().SetStatus("failed").SetAttemptCount(5).ClearNextAttemptAt().SetFailedAt(n.Owner.CreatedAt).ExecX(ctx)
	again := n.replay(t, path)
	require.Equal(t, "pending 0", again["status"].(string)+" "+string(again["attemptCount"].(json.Number)), "with five attempts of its own")
	require.Equal(t, "failed", n.Get(t, path)["status"])
}

func replayDisabled(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	n.Patch(t, hook, object{"enabled": false})
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, path+"/replay", nil)
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"reason": "webhook_disabled"}, a.Details())
	n.Patch(t, hook, object{"events": []string{"vote.created"}})
	both := n.Refused(t, "ERR_CONFLICT", http.MethodPost, path+"/replay", nil)
	require.Equal(t, object{"reason": "webhook_disabled"}, both.Details())
	n.Patch(t, hook, object{"enabled": true, "events": []string{"post.created"}})
	n.replay(t, path)
}

func replayUnsubscribed(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	n.Patch(t, hook, object{"events": []string{"vote.created", "post.status_changed"}})
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, path+"/replay", nil)
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"reason": "not_subscribed"}, a.Details())
	n.Patch(t, hook, object{"events": []string{"post.created"}})
	n.replay(t, path)
}

func replayNothing(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	other, _ := n.aDelivery(t)
	stranger := n.on(t, "business")
	theirHook, theirs := stranger.aDelivery(t)
	id := path[len(hook+"/deliveries/"):]
	unchanged := stranger.Watch(t)
	for why, path := range map[string]string{
		"a delivery that never was":     hook + "/deliveries/" + publicid.NewDelivery().String(),
		"a webhook that never was":      "/v1/webhooks/" + publicid.NewWebhook().String() + "/deliveries/" + id,
		"another webhook's delivery":    other + "/deliveries/" + id,
		"a stranger's":                  theirs,
		"mine of a stranger's webhook":  theirHook + "/deliveries/" + id,
		"a stranger's of my webhook":    hook + theirs[len(theirHook):],
		"of a webhook that was deleted": n.deletedHook(t),
	} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, path+"/replay", nil)
		require.Equal(t, http.StatusNotFound, a.Status, why)
	}
	unchanged(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, hook+"/deliveries/x/replay", nil)
}

func replayAs(t *testing.T, n *tenant) {
	hook, path := n.aDelivery(t)
	of, err := publicid.Parse[publicid.Delivery](path[len(hook+"/deliveries/"):])
	require.NoError(t, err)
	as := publicid.NewDelivery()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { assert.NoError(t, n.App.Webhooks.ReplayAs(t.Context(), of, as)) })
	}
	all.Wait()
	n.Patch(t, hook, object{"enabled": false})
	require.NoError(t, n.App.Webhooks.ReplayAs(t.Context(), of, as), "it was made before")
	lines := slices.DeleteFunc(n.Contents(t, "audit_entries"), func(line string) bool { return !strings.Contains(line, "replayDelivery") })
	require.Len(t, lines, 1)
	log := n.Do(t, http.MethodGet, hook+"/deliveries", nil).Body["data"].([]any)
	require.Len(t, log, 2)
	made := log[0].(object)
	require.Equal(t, as.String(), made["id"])
	require.Equal(t, of.String(), made["replayOf"])
	require.Equal(t, as.Time(), apptest.Moment(t, made, "createdAt"), "the list and its filter go by the same")
}

// deletedHook returns the path of a delivery that was deleted with its webhook.
func (n *tenant) deletedHook(t *testing.T) string {
	t.Helper()
	hook, path := n.aDelivery(t)
	n.Make(t, http.MethodDelete, hook, nil)
	return path
}
