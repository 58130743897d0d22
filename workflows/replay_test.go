package workflows_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/internal/publicid"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
	"earshot/worker"
	"earshot/workflows"
)

// Histories are recorded once for each version of a workflow and stay forever. Runs that began with
// an old version must work with the new code.
//
//	go test ./workflows -run TestRecord -record v2
var record = flag.String("record", "", "record histories as this version")

// names collects the names of the registered workflows.
type names []string

func (n *names) RegisterWorkflow(any) { panic("a workflow is registered without a wire name") }
func (n *names) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	*n = append(*n, o.Name)
}

func (n *names) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {
	panic("dynamic workflows have no history to record")
}

func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	var registered names
	worker.Register(&registered)
	require.NotEmpty(t, registered)
	plain := sdk.NewWorkflowReplayer()
	worker.Register(plain)
	replayers := map[string]sdk.WorkflowReplayer{"": plain, " with traces": tracing(t)}
	for _, name := range registered {
		files, err := filepath.Glob(filepath.Join("testdata", name, "*.json.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "workflow %s has no recorded history; see the flag -record", name)
		for _, file := range files {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				h := readHistory(t, file)
				quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
				for how, replayer := range replayers {
					require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(quiet, h, sdk.ReplayWorkflowHistoryOptions{
						OriginalExecution: workflow.Execution{ID: "recorded", RunID: runAfterReset(h)},
					}), "replayed%s", how)
				}
			})
		}
	}
}

// tracing returns a replayer with tracing, as in a worker that sends traces. Tracing changes no
// command, and a run may have begun on a worker without it.
func tracing(t *testing.T) sdk.WorkflowReplayer {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	traces, err := telemetry.NewTraces(t.Context(), sdktrace.WithSyncer(spans))
	require.NoError(t, err)
	both, err := traces.Interceptors()
	require.NoError(t, err)
	var own []interceptor.WorkerInterceptor
	for _, i := range both {
		own = append(own, i.(interceptor.WorkerInterceptor))
	}
	replayer, err := sdk.NewWorkflowReplayerWithOptions(sdk.WorkflowReplayerOptions{Interceptors: own})
	require.NoError(t, err)
	worker.Register(replayer)
	t.Cleanup(func() { require.NotEmpty(t, spans.GetSpans()) })
	return replayer
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	text, err := gzip.NewReader(f)
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(text, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// runAfterReset returns the id of the run that a reset created. It is empty for a run that wasn't
// reset. The replayer then takes the first run's id.
func runAfterReset(h *history.History) string {
	run := ""
	for _, event := range h.GetEvents() {
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			run = failed.GetNewRunId()
		}
	}
	return run
}

// TestRecord has a subtest for every one or few histories, so that each can be recorded on its own.
// The others stay unchanged.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("records only with -record")
	}
	t.Run("first attempt succeeds", recordDelivery("first_attempt_succeeds"))
	t.Run("one retry", recordDelivery("one_retry", 500))
	t.Run("fails for good", recordDelivery("fails_for_good", 500, 500, 500, 500, 500))
	t.Run("group with failures", recordGroup)
	t.Run("retry now", recordUpdate("retry_now", workflows.RetryNowUpdate))
	t.Run("give up", recordUpdate("give_up", workflows.GiveUpUpdate))
	t.Run("canceled", recordCanceled)
	t.Run("reset", recordReset)
	t.Run("sweep", recordSweep)
	t.Run("long sweep", recordLongSweep)
	t.Run("failed part", recordFailedPart)
	t.Run("publication", recordPublication)
	t.Run("recovery", recordRecovery)
	t.Run("replay", recordReplay)
	t.Run("retention", recordRetention)
	t.Run("confirmation", recordConfirmation)
	t.Run("subject request", recordSubjectRequest)
	t.Run("backfill", recordBackfill)
	t.Run("subscribers", recordSubscribers)
}

func recordRetention(t *testing.T) {
	b := newBundle(t, working.Start(t))
	run, err := b.app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: publicid.NewDelivery().String(), TaskQueue: workflows.MainQueue,
	}, workflows.RemoveExpiredName)
	require.NoError(t, err)
	require.NoError(t, run.Get(t.Context(), nil))
	writeHistory(t, b.app.Temporal, workflows.RemoveExpiredName, "nothing_to_do", run.GetID())
}

// recordPublication records an entry whose publication is moved and then comes.
func recordPublication(t *testing.T) {
	c := newChangelog(t)
	entry := c.schedule(t, time.Now().Add(time.Hour))
	c.waits(t, entry, 1)
	c.move(t, entry, time.Now().Add(2*time.Hour))
	c.waits(t, entry, 2)
	c.move(t, entry, time.Now().Add(time.Second))
	writeHistory(t, c.app.Temporal, workflows.PublishChangelogName, "moved_twice", entry)
}

// recordRecovery records a recovery of two pages, one of a disabled webhook, and a canceled one.
func recordRecovery(t *testing.T) {
	o := newOutage(t, 60)
	o.start(t)
	id := o.recover(t)
	_, err := o.ends(t, id)
	require.NoError(t, err)
	writeHistory(t, o.app.Temporal, workflows.RecoverWebhookName, "two_pages", id)

	o = newOutage(t, 1)
	id = o.recover(t)
	o.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+o.webhook, map[string]any{"enabled": false})
	o.start(t)
	_, err = o.ends(t, id)
	require.NoError(t, err)
	writeHistory(t, o.app.Temporal, workflows.RecoverWebhookName, "webhook_disabled", id)

	o = newOutage(t, 250)
	o.start(t)
	id = o.recover(t)
	o.half(t, id)
	require.NoError(t, o.app.Temporal.CancelWorkflow(t.Context(), id, ""))
	_, err = o.ends(t, id)
	require.True(t, temporal.IsCanceledError(err))
	writeHistory(t, o.app.Temporal, workflows.RecoverWebhookName, "canceled", id)
}

// recordReplay records a successful replay and a rejected one.
func recordReplay(t *testing.T) {
	b := newBundle(t, working.Start(t))
	b.post(t)
	id := fmt.Sprint(b.delivery(t, "succeeded")["id"])
	run, _, err := b.replay(t, id)
	require.NoError(t, err)
	writeHistory(t, b.app.Temporal, workflows.ReplayDeliveryName, "replayed", run.GetID())
	run, _, err = b.replay(t, publicid.NewDelivery().String())
	require.Error(t, err)
	writeHistory(t, b.app.Temporal, workflows.ReplayDeliveryName, "refused", run.GetID())
}

// writeHistory writes the history of a workflow's last run when it has ended.
func writeHistory(t *testing.T, c client.Client, workflowName, name, id string) {
	t.Helper()
	err := c.GetWorkflow(t.Context(), id, "").Get(context.Background(), nil)
	var failed *temporal.WorkflowExecutionError
	require.True(t, err == nil || errors.As(err, &failed), "%v", err)
	writeRun(t, c, workflowName, name, id, "")
}

func writeRun(t *testing.T, c client.Client, workflowName, name, id, run string) {
	t.Helper()
	h := &history.History{}
	events := c.GetWorkflowHistory(t.Context(), id, run, false, 0)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		queue := event.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue()
		if queue.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
			queue.Name = "sticky" // begins with the name of the machine
		}
		h.Events = append(h.Events, event)
	}
	file := filepath.Join("testdata", workflowName, strings.Join([]string{*record, name}, "_")+".json.gz")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoFileExists(t, file, "recorded histories are never replaced")
	f, err := os.Create(file)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	text, err := protojson.Marshal(h)
	require.NoError(t, err)
	_, err = z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

// recordSubscribers records a run that waits for its window and sends an e-mail.
func recordSubscribers(t *testing.T) {
	p := newMailedTenant(t, working.Start(t))
	p.votes(t, "voter@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	id := p.Organization.ID.String()
	p.looks(t)
	require.Eventually(t, func() bool {
		return strings.Contains(historyOf(t, p.app.Temporal, id), "EVENT_TYPE_TIMER_STARTED")
	}, testkit.Wait, testkit.Tick)
	p.passes(t)
	p.isTold(t)
	writeHistory(t, p.app.Temporal, workflows.NotifySubscribersName, "told", id)
}

// recordConfirmation records a link that is used, and one that expires.
func recordConfirmation(t *testing.T) {
	b := newBallot(t, working.Start(t))
	id := b.vote(t)
	b.waits(t, b.app.Temporal, id)
	require.NoError(t, b.confirm(t, b.token(t, id)))
	b.ends(t, id)
	writeHistory(t, b.app.Temporal, workflows.ConfirmInteractionName, "confirmed", id)

	id = b.vote(t)
	b.token(t, id)
	b.waits(t, b.app.Temporal, id)
	var n int
	b.query(t, "WITH o AS (UPDATE interactions SET expires_at = now() WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM o", &n)
	require.NoError(t, b.app.Temporal.SignalWorkflow(t.Context(), id, "", workflows.ConfirmedSignal, nil))
	b.ends(t, id)
	writeHistory(t, b.app.Temporal, workflows.ConfirmInteractionName, "over", id)
}
