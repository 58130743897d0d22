package store_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/attempt"
	"earshot/ent/db/delivery"
	"earshot/ent/db/webhook"
	"earshot/internal/jobs"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// fastDeadlocks makes the database look for deadlocks after 20 ms instead of a second, because some
// tests have many deadlocks.
const fastDeadlocks = "&options=-c%20deadlock_timeout%3D20"

// The retention removes a deleted webhook with its log, page by page, while batches lock rows of the
// log in another order. Updated rows are no longer stored in the order of their ids.
func TestAWebhookIsDeletedWhileItsDeliveriesAreUnderWay(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.Database(t) + fastDeadlocks})
	n, pool := app.Tenant(t), poolOf(t, app.Config.DatabaseURL)
	for range 20 {
		o := of(t, app, n, pool)
		ids := make([]publicid.Delivery, 120)
		for i := range ids {
			ids[i] = o.delivery()
		}
		o.retrySome(ids)
		o.deleteAmid(n, ids)
		client := app.Store.Client()
		require.Zero(t, client.Webhook.Query().Where(webhook.ID(o.webhook)).CountX(o.ctx))
		require.NoError(t, removeDeleted(t.Context(), app.Store))
		require.Zero(t, client.Delivery.Query().Where(delivery.WebhookID(o.webhook)).CountX(o.ctx), "nothing is left behind")
		require.Zero(t, client.Attempt.Query().Where(attempt.DeliveryIDIn(ids...)).CountX(o.ctx), "nothing is left behind")
	}
}

// removeDeleted removes the rows of deleted webhooks, as the retention does.
func removeDeleted(ctx context.Context, s *store.Store) error {
	for at := new(store.DeletedPlace); at != nil; {
		_, _, next, err := s.RemoveDeleted(ctx, *at)
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// of is an outbox of a tenant of a running service.
func of(t *testing.T, app *apptest.App, n *apptest.Tenant, pool *pgxpool.Pool) *outbox {
	t.Helper()
	o := &outbox{t: t, store: app.Store, pool: pool, ctx: n.Context(t.Context()), organization: n.Organization.ID}
	hook := n.ID(t, "/v1/webhooks", map[string]any{"url": hookURL, "events": []string{"post.created"}})
	require.NoError(t, o.webhook.UnmarshalText([]byte(hook)))
	o.event = app.Store.Client().Event.Create().SetType("post.created").SetPayload([]byte(payload)).SaveX(o.ctx).ID
	return o
}

// retrySome lets half of the deliveries fail once, in any order.
func (o *outbox) retrySome(ids []publicid.Delivery) {
	o.t.Helper()
	soon := time.Duration(0)
	some := slices.Clone(ids)
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	for batch := range slices.Chunk(some[:len(some)/2], 10) {
		results := make([]store.Result, len(batch))
		for i, id := range batch {
			results[i] = store.Result{ID: id, Number: 1, StartedAt: ago(0), Error: "timeout", Retry: &soon}
		}
		o.record(results...)
	}
}

// deleteAmid deletes the webhook while several processes claim and record all of its deliveries.
func (o *outbox) deleteAmid(n *apptest.Tenant, ids []publicid.Delivery) {
	o.t.Helper()
	ctx := o.t.Context()
	work := []func() error{func() error {
		a := n.Do(o.t, http.MethodDelete, "/v1/webhooks/"+o.webhook.String(), nil)
		assert.Equal(o.t, http.StatusOK, a.Status, "%s", a.Raw)
		return removeDeleted(ctx, o.store)
	}}
	leased := o.claimed(successes(ids)...)
	for range 2 {
		work = append(work,
			func() error { return o.claimMany(ctx, ids) },
			func() error { _, err := o.store.RecordResults(ctx, leased); return err })
	}
	var done sync.WaitGroup
	start := make(chan struct{})
	for _, do := range work {
		done.Go(func() {
			<-start
			assert.NoError(o.t, do())
		})
	}
	close(start)
	done.Wait()
}

func (o *outbox) claimMany(ctx context.Context, ids []publicid.Delivery) error {
	claims := make([]store.Claim, len(ids))
	for i, id := range ids {
		claims[i] = store.Claim{ID: id, Number: 1, WorkflowID: run, Lease: lease}
	}
	_, err := o.store.ClaimDeliveries(ctx, claims)
	return err
}

func successes(ids []publicid.Delivery) []store.Result {
	results := make([]store.Result, len(ids))
	for i, id := range ids {
		results[i] = store.Result{ID: id, Number: 1 + i%2, StartedAt: ago(0), Response: 204}
	}
	return results
}

// The same with a worker: the receiver fails, so that deliveries are retried until their webhooks
// are deleted.
func TestAWorkerGoesOnQuietlyWhenWebhooksAreDeleted(t *testing.T) {
	t.Parallel()
	logs := testkit.NewLogs()
	app := apptest.Start(t, apptest.Options{
		Worker: true, DatabaseURL: testkit.Database(t) + fastDeadlocks, Logs: logs.Logger(),
		Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=1ms,1ms,1ms,1ms"},
	})
	n, r := app.Tenant(t), testkit.NewReceiver(t)
	r.Answer(func(int, testkit.Received) int { return http.StatusTeapot })
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	for round := range 5 {
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
	o := of(t, app, n, poolOf(t, app.Config.DatabaseURL))
	held := o.delivery()
	tx, err := o.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR UPDATE", held.UUID())
	require.NoError(t, err)
	n.Make(t, http.MethodDelete, "/v1/webhooks/"+o.webhook.String(), nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/webhooks/"+o.webhook.String(), nil)
	require.NoError(t, tx.Rollback(t.Context()))
}

// deleted marks a webhook, as its owner's deletion does.
func (o *outbox) deleted() {
	o.t.Helper()
	_, err := o.pool.Exec(o.t.Context(), "UPDATE webhooks SET deleted_at = now(), enabled = false WHERE id = $1", o.webhook.UUID())
	require.NoError(o.t, err)
}

func TestADeletedWebhookIsRemovedPageByPageAndItsOwnRowLast(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	other := another(t, o.store, o.pool)
	kept := other.delivery()
	rows := make([]*db.DeliveryCreate, 501)
	for i := range rows {
		rows[i] = o.store.Client().Delivery.Create().SetWebhookID(o.webhook).SetEventID(o.event).SetEventType("post.created")
	}
	o.store.Client().Delivery.CreateBulk(rows...).ExecX(o.ctx)
	last := o.delivery()
	o.record(success(last, 1))
	o.store.Client().Recovery.Create().SetWebhookID(o.webhook).SetSince(ago(time.Hour)).SetUntil(ago(0)).SaveX(o.ctx)
	removed, hooks, next, err := o.store.RemoveDeleted(t.Context(), store.DeletedPlace{})
	require.NoError(t, err)
	require.Nil(t, next, "nothing is deleted yet")
	require.Zero(t, removed+hooks)

	o.deleted()
	place := new(store.DeletedPlace)
	var pages [][]int
	for place != nil {
		removed, hooks, next, err := o.store.RemoveDeleted(t.Context(), *place)
		require.NoError(t, err)
		pages, place = append(pages, []int{removed, hooks}), next
	}
	require.Equal(t, [][]int{{500, 0}, {2, 1}, {0, 0}}, pages)
	require.Zero(t, o.store.Client().Recovery.Query().CountX(o.ctx))
	require.Empty(t, o.attempts(last))
	require.Equal(t, []publicid.Delivery{kept}, other.deliveries())
}

func TestARemovalThatIsKilledAfterAPageLeavesTheWebhookToBeFound(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	held, free := o.delivery(), o.delivery()
	o.deleted()
	tx, err := o.pool.Begin(t.Context())
	require.NoError(t, err)
	// RecordResults takes the same lock.
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries WHERE id = $1 FOR NO KEY UPDATE", held.UUID())
	require.NoError(t, err)
	require.NoError(t, removeDeleted(t.Context(), o.store))
	require.Equal(t, []publicid.Delivery{held}, o.deliveries(), "%s went, and nothing waited", free)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, removeDeleted(t.Context(), o.store))
	require.Empty(t, o.deliveries())
}

// All queries of the service skip the deliveries of a deleted webhook.
func TestQueriesSkipTheDeliveriesOfADeletedWebhook(t *testing.T) {
	t.Parallel()
	o := newOutboxAlone(t)
	neighbour := another(t, o.store, o.pool)
	due := func(c *db.DeliveryCreate) { c.SetNextAttemptAt(ago(time.Hour)) }
	gone, kept := o.delivery(due), neighbour.delivery(due)
	o.store.Client().Recovery.Create().SetWebhookID(o.webhook).SetSince(ago(time.Hour)).SetUntil(ago(0)).SaveX(o.ctx)
	o.deleted()
	overdue, err := o.store.OverdueDeliveries(t.Context(), time.Minute, store.Overdue{}, 10)
	require.NoError(t, err)
	require.Len(t, overdue, 1)
	require.Equal(t, kept, overdue[0].ID)
	running, err := newWebhooks(o.store).SweepRecoveries().Rows(t.Context(), 0, jobs.Overdue{}, 10)
	require.NoError(t, err)
	require.Empty(t, running)
	n, err := o.store.EndDeliveries(t.Context(), "", "given_up", []publicid.Delivery{gone, kept})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, store.Claimed{Gone: true}, o.claim(gone, 1))
}
