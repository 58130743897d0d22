package worker_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"earshot/internal/telemetry"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// traced starts a service with traces.
func traced(t *testing.T, o apptest.Options, sampler sdktrace.Sampler) (*apptest.App, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	var err error
	o.Traces, err = telemetry.NewTraces(t.Context(), sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
	require.NoError(t, err)
	return apptest.Start(t, o), spans
}

// strangers is another service's traceparent, with the sampled flag.
const strangers = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// post makes one post with that traceparent, and the receiver gets the event.
func post(t *testing.T, app *apptest.App, r *testkit.Receiver) {
	t.Helper()
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	n.Register(t, r, "post.created")
	a := n.Do(t, http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"},
		"traceparent", strangers, "tracestate", "stranger=1")
	require.Equal(t, http.StatusCreated, a.Status)
}

func TestATraceLeadsFromTheRequestThroughCommitAndWorkflowToEachAttempt(t *testing.T) {
	t.Parallel()
	r, book := testkit.NewReceiver(t), testkit.NewLogs()
	r.Answer(func(n int, _ testkit.Received) int { return map[bool]int{true: 500, false: 200}[n == 1] })
	app, spans := traced(t, apptest.Options{Worker: true, Logs: book.Logger()}, sdktrace.AlwaysSample())
	post(t, app, r)
	got := r.Await(t, 2)
	chain := []string{
		"attempt", "RunActivity:attempt_later", "StartActivity:attempt_later", "RunWorkflow:deliver_webhooks",
		"StartWorkflow:deliver_webhooks", "start", "commit", "createPost",
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := spans.GetSpans()
		var found []string
		of := func(s tracetest.SpanStub) bool {
			return s.Name == "attempt" && strings.Contains(got[1].Header.Get("traceparent"), s.SpanContext.SpanID().String())
		}
		for at := slices.IndexFunc(all, of); at >= 0; at = slices.IndexFunc(all, func(s tracetest.SpanStub) bool {
			return all[at].Parent.IsValid() && s.SpanContext.SpanID() == all[at].Parent.SpanID()
		}) {
			found = append(found, all[at].Name)
		}
		require.Equal(c, chain, found)
	}, testkit.Wait, testkit.Tick)
	all := spans.GetSpans()
	request := all[slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == "createPost" })]
	id := request.SpanContext.TraceID().String()
	for _, one := range got {
		require.Regexp(t, "^00-"+id+"-[0-9a-f]{16}-01$", one.Header.Get("traceparent"))
		require.Empty(t, one.Header.Get("tracestate"))
		require.NoError(t, one.Invalid, "the signature is about the body alone")
	}
	require.NotContains(t, strangers, id, "a caller's trace is a link")
	require.Len(t, request.Links, 1)
	require.Contains(t, strangers, request.Links[0].SpanContext.TraceID().String())
	require.Empty(t, request.Links[0].SpanContext.TraceState().String())
	for _, line := range []string{`"msg":"request"`, `"msg":"attempt"`} {
		require.True(t, slices.ContainsFunc(strings.Split(book.String(), "\n"), func(l string) bool {
			return strings.Contains(l, line) && strings.Contains(l, `"traceId":"`+id+`"`) && strings.Contains(l, `"spanId":"`)
		}), "a line %s names the trace", line)
	}
}

func TestASweepIsATraceOfItsOwn(t *testing.T) {
	t.Parallel()
	app, spans := traced(t, apptest.Options{Worker: true}, sdktrace.AlwaysSample())
	for range 2 {
		// A part of a run may fail while Temporal is slow to list runs. The run is still a trace.
		_ = startSweep(t, app).Get(t.Context(), nil)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		// A run whose first task is repeated has several spans.
		traces, runs := map[trace.TraceID]bool{}, map[attribute.Value]trace.TraceID{}
		for _, s := range spans.GetSpans() {
			require.NotContains(c, s.Name, "CreateSchedule")
			if s.Name == "RunWorkflow:sweep_outbox" {
				of := attribute.NewSet(s.Attributes...)
				run, _ := of.Value("temporalRunID")
				traces[s.SpanContext.TraceID()], runs[run] = true, s.SpanContext.TraceID()
			}
		}
		require.GreaterOrEqual(c, len(runs), 2)
		require.Len(c, traces, len(runs))
	}, testkit.Wait, testkit.Tick)
}

func TestNoStrangerHasATraceKeptThatOurSamplerDrops(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	app, spans := traced(t, apptest.Options{Worker: true}, sdktrace.ParentBased(sdktrace.NeverSample()))
	post(t, app, r)
	require.Empty(t, r.Await(t, 1)[0].Header.Get("traceparent"))
	require.Empty(t, spans.GetSpans())
}

func TestReceiversAreToldOfNoTraceWhereThereIsNone(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	post(t, scrapable.Start(t), r)
	require.Empty(t, r.Await(t, 1)[0].Header.Get("traceparent"))
}
