package webhooks_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/delivery"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

// These tests call the use cases in place of the workflow. Package workflows tests the workflow
// itself.

func recoversTheWindow(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	since, until := apptest.Agos(20)[0], apptest.Agos(10)[0]
	at := n.fails(t, hook, event.PostCreated,
		since.Add(-time.Microsecond), since, until.Add(-time.Microsecond), until)
	n.fails(t, n.Hook(t), event.PostCreated, since)
	pending := n.fails(t, hook, event.PostCreated, since, since)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	client.Delivery.UpdateOneID(pending[0]).SetStatus("pending").ExecX(ctx)
	client.Delivery.UpdateOneID(pending[1]).SetStatus("succeeded").ExecX(ctx)
	id := n.Recover(t, hook, object{"since": since, "until": until})
	require.Equal(t, 1, n.runs(t, id))
	require.Equal(t, once(at[1], at[2]), n.replayed(t, hook))
	ended := n.Get(t, hook+"/recoveries/"+id.String())
	require.Equal(t, "completed 2 of 2", told(ended))
	require.NotNil(t, ended["endedAt"])
	replay := n.Do(t, http.MethodGet, hook+"/deliveries?limit=1", nil).Body["data"].([]any)[0].(object)
	require.Equal(t, at[2].String(), replay["replayOf"])
	require.Equal(t, "pending", replay["status"])
}

// told summarizes the state of a recovery.
func told(r object) string {
	text := r["status"].(string)
	if reason, ok := r["stoppedReason"].(string); ok {
		text += " " + reason
	}
	return text + " " + fmt.Sprint(r["replayed"], " of ", r["total"])
}

func recoversOneEvent(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	n.fails(t, hook, event.VoteCreated, apptest.Agos(10)...)
	wanted := n.fails(t, hook, event.PostCreated, apptest.Agos(10)...)
	n.fails(t, hook, event.WebhookTest, apptest.Agos(10)...)
	id := n.Recover(t, hook, object{"since": apptest.Agos(60)[0], "eventType": "post.created"})
	n.runs(t, id)
	require.Equal(t, once(wanted...), n.replayed(t, hook))
	require.Equal(t, "completed 1 of 1", told(n.Get(t, hook+"/recoveries/"+id.String())))
}

func recoversSubscribed(t *testing.T, n *tenant) {
	hook := n.Hook(t, event.PostCreated, event.CommentCreated)
	n.fails(t, hook, event.VoteCreated, apptest.Agos(10)...)
	wanted := n.fails(t, hook, event.PostCreated, apptest.Agos(10)...)
	wanted = append(wanted, n.fails(t, hook, event.WebhookTest, apptest.Agos(10)...)...)
	id := n.Recover(t, hook, apptest.Minute())
	n.runs(t, id)
	require.Equal(t, once(wanted...), n.replayed(t, hook), "a test needs no subscription")
	require.Equal(t, "completed 2 of 2", told(n.Get(t, hook+"/recoveries/"+id.String())))
}

func recoversOnce(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	failed := n.fails(t, hook, event.PostCreated, apptest.Agos(10, 10, 10, 10)...)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	for i, status := range []delivery.Status{"pending", "succeeded", "failed"} {
		replay, err := publicid.Parse[publicid.Delivery](n.replay(t, hook+"/deliveries/"+failed[i].String())["id"].(string))
		require.NoError(t, err)
		client.Delivery.UpdateOneID(replay).SetStatus(status).ExecX(ctx)
	}
	first := n.Recover(t, hook, object{"since": apptest.Agos(60)[0], "until": apptest.Agos(5)[0]})
	n.runs(t, first)
	require.Equal(t, once(failed...), n.replayed(t, hook))
	require.Equal(t, "completed 1 of 1", told(n.Get(t, hook+"/recoveries/"+first.String())))
	again := n.Recover(t, hook, apptest.Minute())
	n.runs(t, again)
	require.Equal(t, "completed 1 of 1", told(n.Get(t, hook+"/recoveries/"+again.String())), "the replay that failed itself")
	require.Len(t, n.replayed(t, hook), 5)
}

func recoversByPage(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	failed := n.fails(t, hook, event.PostCreated, pile(120)...)
	id := n.Recover(t, hook, apptest.Minute())
	at := hook + "/recoveries/" + id.String()
	for _, want := range []string{"running 50 of 120", "running 100 of 120", "completed 120 of 120", "completed 120 of 120"} {
		// Only the first call counts.
		_, err := n.App.Webhooks.CountRecovery(t.Context(), id)
		require.NoError(t, err)
		_, err = n.App.Webhooks.RecoverNext(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, told(n.Get(t, at)))
	}
	require.Equal(t, once(failed...), n.replayed(t, hook))
}

func recoversInTurns(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	failed := n.fails(t, hook, event.PostCreated, pile(64)...)
	id := n.Recover(t, hook, apptest.Minute())
	var all sync.WaitGroup
	// Several callers at once, as after a worker that was believed dead but still runs.
	for range 4 {
		all.Go(func() {
			for {
				progress, err := n.App.Webhooks.RecoverNext(t.Context(), id)
				if !assert.NoError(t, err) || progress.Status != "running" {
					return
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, once(failed...), n.replayed(t, hook))
	row := n.App.Store.Client().Recovery.GetX(n.Context(t.Context()), id)
	require.Equal(t, "completed", string(row.Status))
	require.Equal(t, 64, row.Replayed)
}

// midway makes a recovery that has finished the first of its two pages.
func (n *tenant) midway(t *testing.T, hook string, body object) publicid.Recovery {
	t.Helper()
	n.fails(t, hook, event.PostCreated, pile(51)...)
	id := n.Recover(t, hook, body)
	_, err := n.App.Webhooks.CountRecovery(t.Context(), id)
	require.NoError(t, err)
	_, err = n.App.Webhooks.RecoverNext(t.Context(), id)
	require.NoError(t, err)
	return id
}

func stopsWhenDisabled(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	id := n.midway(t, hook, apptest.Minute())
	n.Patch(t, hook, object{"enabled": false})
	n.runs(t, id)
	ended := n.Get(t, hook+"/recoveries/"+id.String())
	require.Equal(t, "stopped webhook_disabled 50 of 51", told(ended))
	require.NotNil(t, ended["endedAt"])
	n.Patch(t, hook, object{"enabled": true})
	again := n.Recover(t, hook, apptest.Minute())
	n.runs(t, again)
	require.Equal(t, "completed 1 of 1", told(n.Get(t, hook+"/recoveries/"+again.String())), "what was left")
}

func stopsWhenUnsubscribed(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	id := n.midway(t, hook, object{"since": apptest.Agos(60)[0], "eventType": "post.created"})
	n.Patch(t, hook, object{"events": []string{"vote.created"}})
	n.runs(t, id)
	require.Equal(t, "stopped not_subscribed 50 of 51", told(n.Get(t, hook+"/recoveries/"+id.String())))
	every := n.Recover(t, hook, apptest.Minute())
	n.runs(t, every)
	require.Equal(t, "completed 0 of 0", told(n.Get(t, hook+"/recoveries/"+every.String())), "of all events, none is left")
}

func endsWhenDeleted(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	id := n.midway(t, hook, apptest.Minute())
	n.Make(t, http.MethodDelete, hook, nil)
	progress, err := n.App.Webhooks.RecoverNext(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, progress.Status)
	progress, err = n.App.Webhooks.CountRecovery(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, progress.Status)
}

func staysEnded(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	id := n.midway(t, hook, apptest.Minute())
	require.NoError(t, n.App.Webhooks.CancelRecovery(t.Context(), id))
	ended := n.Get(t, hook+"/recoveries/"+id.String())
	require.Equal(t, "stopped canceled 50 of 51", told(ended))
	require.NoError(t, n.App.Webhooks.CancelRecovery(t.Context(), id))
	progress, err := n.App.Webhooks.RecoverNext(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "stopped", progress.Status)
	require.Equal(t, ended, n.Get(t, hook+"/recoveries/"+id.String()))
	require.Len(t, n.replayed(t, hook), 50)
}

func recoversUnpaid(t *testing.T, n *tenant) {
	hook := n.Hook(t)
	id := n.midway(t, hook, apptest.Minute())
	n.App.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	n.runs(t, id)
	require.Equal(t, "completed 51 of 51", told(n.Get(t, hook+"/recoveries/"+id.String())))
}

func recoversOwn(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	theirs := stranger.Hook(t)
	stranger.fails(t, theirs, event.PostCreated, apptest.Agos(10)...)
	hook := n.Hook(t)
	id := n.Recover(t, hook, apptest.Minute())
	unchanged := stranger.Watch(t)
	n.runs(t, id)
	require.Equal(t, "completed 0 of 0", told(n.Get(t, hook+"/recoveries/"+id.String())))
	unchanged(t)
}
