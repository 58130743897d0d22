package dispatch_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAGroupIsPartOfOneRequestsTraceAndLinksToTheOthers(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	spans := tracetest.NewInMemoryExporter()
	traces, err := telemetry.NewTraces(t.Context(), sdktrace.WithSyncer(spans))
	require.NoError(t, err)
	dispatcher := dispatch.New(app.Connection, 60, testkit.Log(t))
	dispatcher.Trace(traces)
	request := func(id byte, flags trace.TraceFlags) *trace.SpanContext {
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{id}, SpanID: trace.SpanID{id}, TraceFlags: flags})
		return &sc
	}
	dropped, first, second := request(1, 0), request(2, trace.FlagsSampled), request(3, trace.FlagsSampled)
	var group []change.PendingDelivery
	for _, of := range []*trace.SpanContext{dropped, nil, first, first, second, second, dropped} {
		group = append(group, change.PendingDelivery{
			ID: publicid.NewDelivery(), Webhook: publicid.NewWebhook(), Organization: publicid.NewOrganization(),
			EventType: "post.created", Trace: of,
		})
	}
	dispatcher.Deliver(group)
	dispatcher.Drain(t.Context())
	all := spans.GetSpans()
	at := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == "start" })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, first.TraceID(), all[at].SpanContext.TraceID())
	require.Equal(t, first.SpanID(), all[at].Parent.SpanID())
	require.Len(t, all[at].Links, 1)
	require.Equal(t, second.TraceID(), all[at].Links[0].SpanContext.TraceID())
}
