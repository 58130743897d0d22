package worker_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/fixture"
	"earshot/workflows"
)

// month is the default retention of a deployment.
const month = 30 * 24 * time.Hour

// unlimited is a service that keeps everything.
var unlimited = apptest.Shared{Worker: true, Turns: true, Environ: []string{"EARSHOT_RETENTION=0"}}

// removal starts the retention.
func removal(t *testing.T, app *apptest.App) client.WorkflowRun {
	t.Helper()
	run, err := app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: publicid.NewEvent().String(), TaskQueue: workflows.MainQueue,
	}, workflows.RemoveExpiredName)
	require.NoError(t, err)
	return run
}

func removed(t *testing.T, run client.WorkflowRun) (result activities.RemoveResult) {
	t.Helper()
	require.NoError(t, run.Get(t.Context(), &result))
	return result
}

// old is a webhook's delivery that failed more than a month ago, with its event.
type old struct {
	tenant   *apptest.Tenant
	webhook  string
	delivery publicid.Delivery
}

func newOld(t *testing.T, app *apptest.App) old {
	t.Helper()
	o := old{tenant: app.Tenant(t), delivery: fixture.IDAt(publicid.DeliveryAt, time.Now().Add(-month-time.Hour))}
	o.webhook = o.tenant.Register(t, testkit.NewReceiver(t), "post.created")
	var webhook publicid.Webhook
	require.NoError(t, webhook.UnmarshalText([]byte(o.webhook)))
	ctx, c := o.tenant.Context(t.Context()), app.Store.Client()
	event := c.Event.Create().SetID(fixture.IDAt(publicid.EventAt, time.Now().Add(-month-time.Hour))).
		SetType("post.created").SetPayload([]byte("{}")).SaveX(ctx).ID
	c.Delivery.Create().SetID(o.delivery).SetWebhookID(webhook).SetEventID(event).SetEventType("post.created").
		SetStatus(delivery.StatusFailed).ExecX(ctx)
	return o
}

func (o old) replay(t *testing.T) int {
	t.Helper()
	return o.tenant.Do(t, http.MethodPost, "/v1/webhooks/"+o.webhook+"/deliveries/"+o.delivery.String()+"/replay", nil).Status
}

func TestADeliveryOlderThanTheRetentionIsRemovedAndCannotBeReplayed(t *testing.T) {
	t.Parallel()
	app := inTurns.Start(t)
	o := newOld(t, app)
	require.Equal(t, activities.RemoveResult{Deliveries: 1, Events: 1}, removed(t, removal(t, app)))
	require.Equal(t, http.StatusNotFound, o.replay(t))
	require.Equal(t, activities.RemoveResult{}, removed(t, removal(t, app)))
}

func TestTombstonesThatAreOlderThanTheRetentionAreRemoved(t *testing.T) {
	t.Parallel()
	app := inTurns.Start(t)
	n := app.Tenant(t)
	for range 2 {
		n.Make(t, http.MethodDelete, "/v1/contacts/"+n.ID(t, "/v1/contacts", apptest.Object{}), nil)
	}
	const own = "(SELECT id FROM tombstones WHERE organization_id = $1 LIMIT 1)"
	of := n.Organization.ID.UUID()
	_, err := app.Pool.Exec(t.Context(), "UPDATE tombstones SET deleted_at = now() - interval '31 days' WHERE id = "+own, of)
	require.NoError(t, err)
	require.Equal(t, 1, removed(t, removal(t, app)).Tombstones)
	var left int
	require.NoError(t, app.Pool.QueryRow(t.Context(), "SELECT count(*) FROM tombstones WHERE organization_id = $1", of).Scan(&left))
	require.Equal(t, 1, left)
}

func TestEverythingButFullBudgetsOfKeysIsKeptWhenTheRetentionIsZero(t *testing.T) {
	t.Parallel()
	app := unlimited.Start(t)
	o := newOld(t, app)
	_, err := app.Pool.Exec(t.Context(), `DELETE FROM token_buckets WHERE full_at IN ('-infinity', 'infinity');
		INSERT INTO token_buckets VALUES (gen_random_uuid(), '-infinity'), (gen_random_uuid(), 'infinity')`)
	require.NoError(t, err)
	require.Equal(t, activities.RemoveResult{}, removed(t, removal(t, app)))
	require.Equal(t, http.StatusCreated, o.replay(t))
	var full, used int
	require.NoError(t, app.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE full_at = '-infinity'),
		count(*) FILTER (WHERE full_at = 'infinity') FROM token_buckets`).Scan(&full, &used))
	require.Equal(t, []int{0, 1}, []int{full, used})
}

func TestADeletedWebhookAndItsLogAreRemovedEvenWithUnlimitedRetention(t *testing.T) {
	t.Parallel()
	app := unlimited.Start(t)
	gone, kept := newOld(t, app), newOld(t, app)
	gone.tenant.Make(t, http.MethodDelete, "/v1/webhooks/"+gone.webhook, nil)
	require.Equal(t, http.StatusNotFound, gone.replay(t))
	require.Equal(t, activities.RemoveResult{Deliveries: 1, Webhooks: 1}, removed(t, removal(t, app)))
	require.Equal(t, activities.RemoveResult{}, removed(t, removal(t, app)))
	require.Equal(t, http.StatusCreated, kept.replay(t))
}

func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// The test cuts the database connection while the removal waits for the third of three kinds of
// rows.
func TestARemovalThatIsCutOffMidwayGoesOnAndCountsEverything(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	app := apptest.Start(t, apptest.Options{Worker: true, DatabaseURL: database})
	newOld(t, app)
	holder, other := connect(t, database), connect(t, database)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE recoveries IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	run := removal(t, app)
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		// A transaction always sees its first list of connections, so this query runs outside of
		// tx.
		var cut int
		require.NoError(collect, other.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%recoveries%'`).Scan(&cut))
		require.Positive(collect, cut)
	}, testkit.Wait, testkit.Tick)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, activities.RemoveResult{Deliveries: 1, Events: 1}, removed(t, run))
}
