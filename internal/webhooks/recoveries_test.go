package webhooks_test

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit/apptest"
)

func TestARecovery(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is accepted at once and can be read":                       acceptedRecovery,
		"takes a window whose end is cut at now":                    cutWindow,
		"is refused for a window that holds nothing":                emptyWindow,
		"is refused by a webhook that is disabled":                  recoveryDisabled,
		"is refused for an event that isn't subscribed to":          recoveryUnsubscribed,
		"of a missing webhook is refused":                           recoveryNowhere,
		"goes with its webhook":                                     recoveryGoesAlong,
		"replays failed deliveries that were created in the window": recoversTheWindow,
		"replays one event only, if it is asked for":                recoversOneEvent,
		"leaves out events that the webhook doesn't subscribe to":   recoversSubscribed,
		"leaves out deliveries with a replay, in any status":        recoversOnce,
		"goes on where it was, page by page":                        recoversByPage,
		"replays no delivery twice when it runs twice":              recoversInTurns,
		"is refused while another one of the webhook runs":          recoveryRunning,
		"begins once, of several that are asked for at once":        recoversOnceAtATime,
		"stops when the webhook is disabled midway":                 stopsWhenDisabled,
		"stops when its event isn't subscribed to any more":         stopsWhenUnsubscribed,
		"ends without a trace when the webhook is deleted":          endsWhenDeleted,
		"stays ended when it is canceled or continued again":        staysEnded,
		"that was accepted goes on in the read-only state":          recoversUnpaid,
		"of a window that another organization fills is empty":      recoversOwn,
	})
}

// fails makes deliveries that failed for good, created at the given times.
func (n *tenant) fails(t *testing.T, hook string, of event.Type, created ...time.Time) []publicid.Delivery {
	t.Helper()
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	to := n.hookID(t, hook)
	happened := client.Event.Create().SetType(string(of)).SetPayload([]byte(`{}`)).SetCreatedAt(n.Owner.CreatedAt).SaveX(ctx)
	ids := make([]publicid.Delivery, len(created))
	for i, at := range created {
		ids[i] = client.Delivery.Create().SetWebhookID(to).SetEventID(happened.ID).SetEventType(string(of)).
			SetCreatedAt(at).SetStatus("failed").SetAttemptCount(5).SetFailedAt(at).SaveX(ctx).ID
	}
	return ids
}

func (n *tenant) hookID(t *testing.T, path string) publicid.Webhook {
	t.Helper()
	id, err := publicid.Parse[publicid.Webhook](path[len("/v1/webhooks/"):])
	require.NoError(t, err)
	return id
}

// pile returns count times, all a few seconds ago.
func pile(count int) []time.Time {
	at := make([]time.Time, count)
	for i := range at {
		at[i] = apptest.Agos(10)[0]
	}
	return at
}

// runs does the workflow's work to the end, and returns the number of calls of RecoverNext.
func (n *tenant) runs(t *testing.T, id publicid.Recovery) (pages int) {
	t.Helper()
	progress, err := n.App.Webhooks.CountRecovery(t.Context(), id)
	require.NoError(t, err)
	for progress.Status == "running" {
		progress, err = n.App.Webhooks.RecoverNext(t.Context(), id)
		require.NoError(t, err)
		pages++
	}
	return pages
}

// replayed counts how often each delivery of a webhook was replayed.
func (n *tenant) replayed(t *testing.T, hook string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, d := range n.App.Store.Client().Delivery.Query().AllX(n.Context(t.Context())) {
		if d.ReplayOf != nil && d.WebhookID == n.hookID(t, hook) {
			found[d.ReplayOf.String()]++
		}
	}
	return found
}

// once is the result of replayed if each of the ids was replayed once.
func once(ids ...publicid.Delivery) map[string]int {
	want := map[string]int{}
	for _, id := range ids {
		want[id.String()] = 1
	}
	return want
}

func acceptedRecovery(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	since := "2026-03-12T00:00:00Z"
	a := n.Do(t, http.MethodPost, hook+"/recover", object{"since": since, "eventType": "post.created"})
	require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Raw)
	made := a.Data()
	require.Equal(t, object{
		"webhookId": hook[len("/v1/webhooks/"):], "since": since, "until": made["createdAt"], "eventType": "post.created",
		"status": "running", "stoppedReason": nil, "total": nil, "replayed": json.Number("0"), "endedAt": nil,
	}, apptest.Without(made, "id", "createdAt"))
	require.Equal(t, made, n.Get(t, hook+"/recoveries/"+made["id"].(string)))
	all := n.Get(t, hook)
	n.runs(t, n.RecoveryID(t, made["id"]))
	made = n.Get(t, hook+"/recoveries/"+made["id"].(string))
	second := n.Make(t, http.MethodPost, hook+"/recover", object{"since": since})
	list := n.Do(t, http.MethodGet, hook+"/recoveries", nil).Body["data"]
	require.Equal(t, []any{second, made}, list, "newest first")
	require.Equal(t, all, n.Get(t, hook), "the webhook is as it was")
}

func cutWindow(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	made := n.Make(t, http.MethodPost, hook+"/recover", object{"since": apptest.Agos(5)[0], "until": "2199-01-01T00:00:00Z"})
	require.Equal(t, made["createdAt"], made["until"])
	n.runs(t, n.RecoveryID(t, made["id"]))
	until := "2026-03-12T10:41:07.123456Z"
	made = n.Make(t, http.MethodPost, hook+"/recover", object{"since": "2026-03-12T11:41:07.1234559+01:00", "until": until})
	require.Equal(t, until, made["until"])
	require.Equal(t, "2026-03-12T10:41:07.123455Z", made["since"])
}

func emptyWindow(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	for _, bad := range []struct {
		body  object
		field string
	}{
		{object{"since": "2026-03-12T10:41:07Z", "until": "2026-03-12T10:41:07Z"}, "until"},
		{object{"since": "2026-03-12T10:41:07Z", "until": "2026-03-12T10:41:06.999999Z"}, "until"},
		{object{"since": "2026-03-12T10:41:07.1234567Z", "until": "2026-03-12T10:41:07.1234569Z"}, "until"},
		{object{"since": "2199-01-01T00:00:00Z"}, "since"},
		{object{"since": "2199-01-01T00:00:00Z", "until": "2199-01-02T00:00:00Z"}, "since"},
		{object{"since": "0000-01-01T00:00:00Z"}, "since"},
		{object{}, "since"},
		{object{"since": "2026-03-12T10:41:07Z", "eventType": "post.deleted"}, "eventType"},
		{object{"since": "2026-03-12T10:41:07Z", "eventType": ""}, "eventType"},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, hook+"/recover", bad.body)
		require.Equal(t, []string{bad.field}, a.Fields(), "%s", a.Raw)
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, hook+"/recover", object{"since": "2026", "eventType": "x"})
	require.ElementsMatch(t, []string{"since", "eventType"}, a.Fields())
}

func recoveryDisabled(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	n.Patch(t, hook, object{"enabled": false})
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, hook+"/recover", apptest.Minute())
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"reason": "webhook_disabled"}, a.Details())
}

func recoveryUnsubscribed(t *testing.T, n *tenant) {
	hook := n.Hook(t, event.PostCreated)
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, hook+"/recover", object{"since": apptest.Agos(60)[0], "eventType": "vote.created"})
	require.Equal(t, object{"reason": "not_subscribed"}, a.Details())
	n.Recover(t, hook, object{"since": apptest.Agos(60)[0], "eventType": "webhook.test"})
}

func recoveryRunning(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	first := n.Recover(t, hook, apptest.Minute())
	unchanged := n.Watch(t)
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, hook+"/recover", apptest.Minute())
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"reason": "recovery_running", "recoveryId": first.String()}, a.Details())
	unchanged(t)
	n.Recover(t, n.Hook(t), apptest.Minute()) // of another webhook
	n.runs(t, first)
	n.Recover(t, hook, apptest.Minute())
}

func recoversOnceAtATime(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	answers := make([]apptest.Answer, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = n.Do(t, http.MethodPost, hook+"/recover", apptest.Minute()) })
	}
	all.Wait()
	list := n.Walk(t, hook+"/recoveries", "25", nil)
	require.Len(t, list, 1)
	var accepted int
	for _, a := range answers {
		if a.Status == http.StatusAccepted {
			accepted++
			continue
		}
		require.Equal(t, http.StatusConflict, a.Status, "%s", a.Raw)
		require.Equal(t, list[0], a.Details()["recoveryId"])
	}
	require.Equal(t, 1, accepted)
}

func recoveryNowhere(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	hook, other, theirs := n.Hook(t), n.Hook(t), stranger.Hook(t)
	mine := n.Recover(t, hook, apptest.Minute()).String()
	yours := stranger.Recover(t, theirs, apptest.Minute()).String()
	unchanged := stranger.Watch(t)
	for why, path := range map[string]string{
		"a recovery that never was": hook + "/recoveries/" + publicid.NewRecovery().String(),
		"another webhook's":         other + "/recoveries/" + mine,
		"a stranger's":              theirs + "/recoveries/" + yours,
		"a stranger's of mine":      hook + "/recoveries/" + yours,
		"mine of a stranger's":      theirs + "/recoveries/" + mine,
		"a stranger's list":         theirs + "/recoveries",
	} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, a.Status, why)
	}
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, theirs+"/recover", apptest.Minute())
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, "/v1/webhooks/"+publicid.NewWebhook().String()+"/recover", apptest.Minute())
	require.Empty(t, n.Walk(t, other+"/recoveries", "25", nil))
	unchanged(t)
}

func recoveryGoesAlong(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	n.Recover(t, hook, apptest.Minute())
	n.Make(t, http.MethodDelete, hook, nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, hook+"/recoveries", nil)
	for at := new(retention.DeletedPlace); at != nil; {
		_, _, next, err := retention.RemoveDeleted(t.Context(), n.App.Store, *at)
		require.NoError(t, err)
		at = next
	}
	require.Zero(t, n.App.Store.Client().Recovery.Query().CountX(n.Context(t.Context())))
}
