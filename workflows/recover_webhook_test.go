package workflows_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/activities"
	"earshot/ent/db"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// outage is a service without a worker, and with a webhook whose deliveries failed for good. start
// gives it a worker in another process.
type outage struct {
	*bundle
	temporal client.Options
	database string
	failed   []*db.Delivery
}

func newOutage(t *testing.T, deliveries int) *outage {
	t.Helper()
	o := &outage{temporal: testkit.Namespace(t), database: testkit.Database(t)}
	o.bundle = setup(t, apptest.Options{Temporal: &o.temporal, DatabaseURL: o.database})
	ctx, store := o.tenant.Context(t.Context()), o.app.Store.Client()
	o.post(t)
	// When there is a worker, the delivery's run finds nothing to do.
	first := store.Delivery.Query().OnlyX(ctx)
	store.Delivery.UpdateOne(first).SetStatus("failed").ClearNextAttemptAt().SetFailedAt(time.Now()).ExecX(ctx)
	more := make([]*db.DeliveryCreate, deliveries-1)
	for i := range more {
		more[i] = store.Delivery.Create().SetWebhookID(first.WebhookID).SetEventID(first.EventID).
			SetEventType(first.EventType).SetStatus("failed").SetFailedAt(time.Now())
	}
	o.failed = append(o.failed, first)
	o.failed = append(o.failed, store.Delivery.CreateBulk(more...).SaveX(ctx)...)
	return o
}

// start gives the service a worker, until the test ends.
func (o *outage) start(t *testing.T) *apptest.App {
	t.Helper()
	return apptest.Start(t, apptest.Options{Worker: true, Temporal: &o.temporal, DatabaseURL: o.database})
}

func (o *outage) recover(t *testing.T) string {
	t.Helper()
	return o.tenant.ID(t, "/v1/webhooks/"+o.webhook+"/recover", map[string]any{"since": time.Now().Add(-time.Hour)})
}

func (o *outage) recovery(t *testing.T, id string) map[string]any {
	t.Helper()
	return o.tenant.Make(t, http.MethodGet, "/v1/webhooks/"+o.webhook+"/recoveries/"+id, nil)
}

// ends waits for the end of the run, which the service may not have started yet.
func (o *outage) ends(t *testing.T, id string) (result activities.RecoverProgress, err error) {
	t.Helper()
	o.started(t, id)
	err = o.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), &result)
	return result, err
}

func (o *outage) started(t *testing.T, id string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := o.app.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(c, err)
	}, testkit.Wait, testkit.Tick)
}

// replays returns the number of replays of each delivery.
func (o *outage) replays(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, d := range o.app.Store.Client().Delivery.Query().AllX(o.tenant.Context(t.Context())) {
		if d.ReplayOf != nil {
			found[d.ReplayOf.String()]++
		}
	}
	return found
}

func (o *outage) eachOnce() map[string]int {
	want := map[string]int{}
	for _, d := range o.failed {
		want[d.ID.String()] = 1
	}
	return want
}

func TestARecoverySendsEverythingThatFailedOnceMore(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 60)
	id := o.recover(t)
	o.start(t)
	got := o.receiver.Await(t, 60)
	for range 2 {
		_, err := o.ends(t, id)
		require.NoError(t, err)
		require.Equal(t, "completed", o.recovery(t, id)["status"])
		id = o.recover(t)
	}
	require.Equal(t, o.eachOnce(), o.replays(t), "the second one finds nothing")
	require.NoError(t, got[0].Invalid)
	require.Len(t, o.receiver.All(), 60)
}

// half returns when a part of the recovery is done.
func (o *outage) half(t *testing.T, id string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NotEqual(c, "0", fmt.Sprint(o.recovery(t, id)["replayed"]))
	}, testkit.Wait, testkit.Tick)
	require.Equal(t, "running", o.recovery(t, id)["status"])
}

func TestARecoveryGoesOnInAnotherProcessAndRepeatsNothing(t *testing.T) {
	tier.Slow(t, "waits for a lease")
	t.Parallel()
	o := newOutage(t, 250)
	id := o.recover(t)
	t.Run("a process that stops midway", func(t *testing.T) {
		o.start(t)
		o.half(t, id)
	})
	require.Equal(t, "running", o.recovery(t, id)["status"])
	o.start(t)
	result, err := o.ends(t, id)
	require.NoError(t, err)
	require.Equal(t, 250, result.Replayed)
	require.Equal(t, 250, result.Total)
	require.Equal(t, o.eachOnce(), o.replays(t))
}

func TestCancelingItsRunStopsARecovery(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 250)
	o.start(t)
	id := o.recover(t)
	o.half(t, id)
	require.NoError(t, o.app.Temporal.CancelWorkflow(t.Context(), id, ""))
	_, err := o.ends(t, id)
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	stopped := o.recovery(t, id)
	require.Equal(t, "stopped canceled", fmt.Sprint(stopped["status"], " ", stopped["stoppedReason"]))
	require.Len(t, o.replays(t), int(number(t, stopped["replayed"])))
	require.Contains(t, o.details(t, id), "stopped: canceled")
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	require.NoError(t, err)
	return n
}

func TestARecoveryOfADisabledWebhookStopsAndSaysWhy(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 1)
	id := o.recover(t)
	o.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+o.webhook, map[string]any{"enabled": false})
	o.start(t)
	result, err := o.ends(t, id)
	require.NoError(t, err)
	require.Equal(t, "webhook_disabled", result.StoppedReason)
	require.Contains(t, o.details(t, id), "stopped: webhook_disabled")
}

func TestTheRunOfARecoveryEndsWhenTheWebhookIsDeleted(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 1)
	id := o.recover(t)
	o.tenant.Make(t, http.MethodDelete, "/v1/webhooks/"+o.webhook, nil)
	o.start(t)
	result, err := o.ends(t, id)
	require.NoError(t, err)
	require.Equal(t, activities.RecoverProgress{}, result)
}

// details returns the run's details in the web UI.
func (b *bundle) details(t *testing.T, id string) string {
	t.Helper()
	answer, err := b.app.Temporal.QueryWorkflow(t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// told returns everything that a run's history contains.
func (b *bundle) told(t *testing.T, id string) string {
	t.Helper()
	var text strings.Builder
	for events := b.app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		plain, err := protojson.Marshal(e)
		require.NoError(t, err)
		text.Write(plain)
		text.WriteString(decoded(string(plain)))
	}
	return text.String()
}

var payloads = regexp.MustCompile(`"data":\s*"([^"]*)"`)

// decoded returns the decoded payloads of a history.
func decoded(history string) string {
	var text strings.Builder
	for _, m := range payloads.FindAllStringSubmatch(history, -1) {
		plain, _ := base64.StdEncoding.DecodeString(m[1])
		text.Write(plain)
	}
	return text.String()
}

func TestARecoveryShowsItsProgressButNeitherPayloadNorReceiver(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 2)
	o.start(t)
	id := o.recover(t)
	_, err := o.ends(t, id)
	require.NoError(t, err)
	require.Contains(t, o.details(t, id), "Replayed **2 of 2** failed deliveries.")
	answer, err := o.app.Temporal.QueryWorkflow(t.Context(), id, "", workflows.StatusQuery)
	require.NoError(t, err)
	var status activities.RecoverProgress
	require.NoError(t, answer.Get(&status))
	require.Equal(t, "completed 2", fmt.Sprint(status.Status, " ", status.Replayed))
	told := o.told(t, id)
	require.Contains(t, told, id)
	require.NotContains(t, told, "Dark mode")
	require.NotContains(t, told, strings.TrimPrefix(o.receiver.URL, "http://"))
}
