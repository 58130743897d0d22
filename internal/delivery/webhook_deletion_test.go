package delivery_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/attempt"
	deliveryrow "earshot/ent/db/delivery"
	"earshot/ent/db/webhook"
	"earshot/internal/delivery"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/fixture"
	"earshot/internal/testkit/tier"
)

// The retention removes a deleted webhook with its log, page by page, while batches lock rows of the
// log in another order. Updated rows are no longer stored in the order of their ids.
func TestAWebhookIsDeletedWhileItsDeliveriesAreUnderWay(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.Database(t) + fixture.FastDeadlocks})
	n := app.Tenant(t)
	for range tier.Repeats() {
		o := of(t, app, n)
		ids := make([]publicid.Delivery, 120)
		for i := range ids {
			ids[i] = o.Delivery()
		}
		o.retrySome(ids)
		o.deleteAmid(n, ids)
		client := app.Store.Client()
		require.Zero(t, client.Webhook.Query().Where(webhook.ID(o.Webhook)).CountX(o.Ctx))
		require.NoError(t, removeDeleted(t.Context(), app.Store))
		require.Zero(t, client.Delivery.Query().Where(deliveryrow.WebhookID(o.Webhook)).CountX(o.Ctx), "nothing is left behind")
		require.Zero(t, client.Attempt.Query().Where(attempt.DeliveryIDIn(ids...)).CountX(o.Ctx), "nothing is left behind")
	}
}

// removeDeleted removes the rows of deleted webhooks, as the retention does.
func removeDeleted(ctx context.Context, s *postgres.DB) error {
	for at := new(retention.DeletedPlace); at != nil; {
		_, _, next, err := retention.RemoveDeleted(ctx, s, *at)
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// of is an outbox of a tenant of a running service.
func of(t *testing.T, app *apptest.App, n *apptest.Tenant) *outbox {
	t.Helper()
	o := &outbox{&fixture.Outbox{T: t, Store: app.Store, Pool: app.Pool, Ctx: n.Context(t.Context()), Organization: n.Organization.ID}}
	hook := n.ID(t, "/v1/webhooks", map[string]any{"url": fixture.HookURL, "events": []string{"post.created"}})
	require.NoError(t, o.Webhook.UnmarshalText([]byte(hook)))
	o.Event = app.Store.Client().Event.Create().SetType("post.created").SetPayload([]byte(fixture.Payload)).SaveX(o.Ctx).ID
	return o
}

// retrySome lets half of the deliveries fail once, in any order.
func (o *outbox) retrySome(ids []publicid.Delivery) {
	o.T.Helper()
	soon := time.Duration(0)
	some := slices.Clone(ids)
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	for batch := range slices.Chunk(some[:len(some)/2], 10) {
		results := make([]delivery.Result, len(batch))
		for i, id := range batch {
			results[i] = delivery.Result{ID: id, Number: 1, StartedAt: fixture.Ago(0), Error: "timeout", Retry: &soon}
		}
		o.Record(results...)
	}
}

// deleteAmid deletes the webhook while several processes claim and record all of its deliveries.
func (o *outbox) deleteAmid(n *apptest.Tenant, ids []publicid.Delivery) {
	o.T.Helper()
	ctx := o.T.Context()
	work := []func() error{func() error {
		a := n.Do(o.T, http.MethodDelete, "/v1/webhooks/"+o.Webhook.String(), nil)
		assert.Equal(o.T, http.StatusOK, a.Status, "%s", a.Raw)
		return removeDeleted(ctx, o.Store)
	}}
	leased := o.Claimed(successes(ids)...)
	for range 2 {
		work = append(work,
			func() error { return o.claimMany(ctx, ids) },
			func() error { _, err := delivery.Record(ctx, o.Store, leased); return err })
	}
	var done sync.WaitGroup
	start := make(chan struct{})
	for _, do := range work {
		done.Go(func() {
			<-start
			assert.NoError(o.T, do())
		})
	}
	close(start)
	done.Wait()
}

func (o *outbox) claimMany(ctx context.Context, ids []publicid.Delivery) error {
	claims := make([]delivery.Claim, len(ids))
	for i, id := range ids {
		claims[i] = delivery.Claim{ID: id, Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease}
	}
	_, err := delivery.ClaimAll(ctx, o.Store, claims)
	return err
}

func successes(ids []publicid.Delivery) []delivery.Result {
	results := make([]delivery.Result, len(ids))
	for i, id := range ids {
		results[i] = delivery.Result{ID: id, Number: 1 + i%2, StartedAt: fixture.Ago(0), Response: 204}
	}
	return results
}

// The same with a worker: the receiver fails, so that deliveries are retried until their webhooks
// are deleted.
func TestAWorkerGoesOnQuietlyWhenWebhooksAreDeleted(t *testing.T) {
	t.Parallel()
	logs := testkit.NewLogs()
	app := apptest.Start(t, apptest.Options{
		Worker: true, DatabaseURL: testkit.Database(t) + fixture.FastDeadlocks, Logs: logs.Logger(),
		Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=1ms,1ms,1ms,1ms"},
	})
	n, r := app.Tenant(t), testkit.NewReceiver(t)
	r.Answer(func(int, testkit.Received) int { return http.StatusTeapot })
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	for round := range max(1, tier.Repeats()/4) {
		var hooks []string
		for range 10 {
			hooks = append(hooks, n.ID(t, "/v1/webhooks", map[string]any{"url": r.URL, "events": []string{"post.created"}}))
		}
		for range 8 {
			n.ID(t, "/v1/boards/"+board+"/posts", map[string]any{"title": "x"})
		}
		r.Await(t, 40*(round+1))
		var done sync.WaitGroup
		for _, hook := range hooks {
			done.Go(func() { n.Make(t, http.MethodDelete, "/v1/webhooks/"+hook, nil) })
		}
		done.Wait()
	}
	last := n.ID(t, "/v1/webhooks", map[string]any{"url": r.URL + "/last", "events": []string{"post.created"}})
	n.ID(t, "/v1/boards/"+board+"/posts", map[string]any{"title": "x"})
	require.Eventually(t, func() bool {
		failed := n.Do(t, http.MethodGet, "/v1/webhooks/"+last+"/deliveries?status=failed", nil)
		return len(failed.Body["data"].([]any)) == 1
	}, testkit.Wait, 20*time.Millisecond, "the worker still works")
	require.NotContains(t, logs.String(), `"level":"ERROR"`)
	require.NotContains(t, logs.String(), "40P01")
	require.NoError(t, removeDeleted(t.Context(), app.Store))
	require.Equal(t, 1, app.Store.Client().Delivery.Query().CountX(n.Context(t.Context())), "nothing is left behind")
}

// The log of a webhook may have millions of rows, and batches hold locks on some of them at any
// moment.
func TestADeletionOfAWebhookWaitsForNoneOfItsDeliveries(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	o := of(t, app, n)
	held := o.Delivery()
	tx, err := o.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR UPDATE", held.UUID())
	require.NoError(t, err)
	n.Make(t, http.MethodDelete, "/v1/webhooks/"+o.Webhook.String(), nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/webhooks/"+o.Webhook.String(), nil)
	require.NoError(t, tx.Rollback(t.Context()))
}

// deleted marks a webhook, as its owner's deletion does.
func (o *outbox) deleted() {
	o.T.Helper()
	_, err := o.Pool.Exec(o.T.Context(), "UPDATE webhooks SET deleted_at = now(), enabled = false WHERE id = $1", o.Webhook.UUID())
	require.NoError(o.T, err)
}

func TestADeletedWebhookIsRemovedPageByPageAndItsOwnRowLast(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	other := another(t, o.Store, o.Pool)
	kept := other.Delivery()
	rows := make([]*db.DeliveryCreate, 501)
	for i := range rows {
		rows[i] = o.Store.Client().Delivery.Create().SetWebhookID(o.Webhook).SetEventID(o.Event).SetEventType("post.created")
	}
	o.Store.Client().Delivery.CreateBulk(rows...).ExecX(o.Ctx)
	last := o.Delivery()
	o.Record(success(last, 1))
	o.Store.Client().Recovery.Create().SetWebhookID(o.Webhook).SetSince(fixture.Ago(time.Hour)).SetUntil(fixture.Ago(0)).SaveX(o.Ctx)
	removed, hooks, next, err := retention.RemoveDeleted(t.Context(), o.Store, retention.DeletedPlace{})
	require.NoError(t, err)
	require.Nil(t, next, "nothing is deleted yet")
	require.Zero(t, removed+hooks)

	o.deleted()
	place := new(retention.DeletedPlace)
	var pages [][]int
	for place != nil {
		removed, hooks, next, err := retention.RemoveDeleted(t.Context(), o.Store, *place)
		require.NoError(t, err)
		pages, place = append(pages, []int{removed, hooks}), next
	}
	require.Equal(t, [][]int{{500, 0}, {2, 1}, {0, 0}}, pages)
	require.Zero(t, o.Store.Client().Recovery.Query().CountX(o.Ctx))
	require.Empty(t, o.Attempts(last))
	require.Equal(t, []publicid.Delivery{kept}, other.Deliveries())
}

func TestARemovalThatIsKilledAfterAPageLeavesTheWebhookToBeFound(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	held, free := o.Delivery(), o.Delivery()
	o.deleted()
	tx, err := o.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // otherwise the next test would wait
	// Record takes the same lock.
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR NO KEY UPDATE", held.UUID())
	require.NoError(t, err)
	require.NoError(t, removeDeleted(t.Context(), o.Store))
	require.Equal(t, []publicid.Delivery{held}, o.Deliveries(), "%s went, and nothing waited", free)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, removeDeleted(t.Context(), o.Store))
	require.Empty(t, o.Deliveries())
}

// All queries of the service skip the deliveries of a deleted webhook.
func TestQueriesSkipTheDeliveriesOfADeletedWebhook(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	neighbour := another(t, o.Store, o.Pool)
	due := func(c *db.DeliveryCreate) { c.SetNextAttemptAt(fixture.Ago(time.Hour)) }
	gone, kept := o.Delivery(due), neighbour.Delivery(due)
	o.Store.Client().Recovery.Create().SetWebhookID(o.Webhook).SetSince(fixture.Ago(time.Hour)).SetUntil(fixture.Ago(0)).SaveX(o.Ctx)
	o.deleted()
	overdue, err := delivery.FindOverdue(t.Context(), o.Store, time.Minute, delivery.Overdue{}, 10)
	require.NoError(t, err)
	require.Len(t, overdue, 1)
	require.Equal(t, kept, overdue[0].ID)
	running, err := newWebhooks(o.Store).SweepRecoveries().Rows(t.Context(), 0, jobs.Overdue{}, 10)
	require.NoError(t, err)
	require.Empty(t, running)
	n, err := delivery.End(t.Context(), o.Store, "", "given_up", []publicid.Delivery{gone, kept})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, delivery.Claimed{Gone: true}, o.Claim(gone, 1))
}
