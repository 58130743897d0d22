package telemetry

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
)

const tracerName = "earshot"

// Traces are the spans that a process sends. Those of an off one cost nothing.
type Traces struct {
	provider *sdktrace.TracerProvider // nil is off
}

// TracesFromEnvironment goes by OpenTelemetry's own variables. Without an address there
// are no traces. The sampler, the batches and the exporter's TLS, headers and timeouts are
// read by OpenTelemetry itself.
func TracesFromEnvironment(ctx context.Context, l *slog.Logger) (*Traces, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return &Traces{}, nil
	}
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return nil, errors.Errorf("OTEL_TRACES_EXPORTER: %q is not there; set it to otlp or none", e)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, errors.Errorf("%s: %q is not there; leave it empty or set it to http/protobuf, to port 4318 of most collectors", name, p)
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { l.Warn("traces", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "make the exporter of traces")
	}
	t, err := NewTraces(ctx, sdktrace.WithBatcher(exporter))
	if err == nil {
		l.InfoContext(ctx, "sending traces")
	}
	return t, err
}

// NewTraces sends spans where it is told to.
func NewTraces(ctx context.Context, to ...sdktrace.TracerProviderOption) (*Traces, error) {
	who, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "earshot")),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Wrap(err, "read OTEL_RESOURCE_ATTRIBUTES")
	}
	return &Traces{sdktrace.NewTracerProvider(append(to, sdktrace.WithResource(who))...)}, nil
}

// On reports whether anybody wants them.
func (t *Traces) On() bool { return t != nil && t.provider != nil }

// Tracer begins traces. What belongs to one that was begun is a Span.
func (t *Traces) Tracer() trace.Tracer {
	if !t.On() {
		return noop.NewTracerProvider().Tracer(tracerName)
	}
	return t.provider.Tracer(tracerName)
}

// Stop sends what is left.
func (t *Traces) Stop(ctx context.Context) error {
	if !t.On() {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return errors.Wrap(err, "send the last traces")
	}
	return nil
}

// Span begins a part of what ctx is a part of; where that isn't traced, it is nothing.
func Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(tracerName).Start(ctx, name, trace.WithAttributes(attrs...))
}

// TraceParent is the header of that name for whoever is asked within ctx; empty where the
// trace isn't kept.
func TraceParent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, header)
	return header["traceparent"]
}

// Interceptors have Temporal's clients and workers go on with the traces in the headers of
// runs and activities; none where there are no traces.
func (t *Traces) Interceptors() ([]interceptor.ClientInterceptor, error) {
	if !t.On() {
		return nil, nil
	}
	made, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: t.Tracer(), TextMapPropagator: propagation.TraceContext{}, DisableBaggage: true,
		// Operators ask, and nothing follows from it.
		DisableQueryTracing: true,
		// A header that can't be read must not stop a delivery.
		AllowInvalidParentSpans: true,
		SpanStarter:             startSpan,
	})
	if err != nil {
		return nil, errors.Wrap(err, "trace what Temporal does")
	}
	return []interceptor.ClientInterceptor{interceptor.NewTracingInterceptor(namedLogs{made})}, nil
}

// startSpan begins no span for a schedule: it would be in the header of each run that the
// schedule starts, and all of them for ever be one trace.
func startSpan(ctx context.Context, t trace.Tracer, name string, o ...trace.SpanStartOption) trace.Span {
	if strings.HasPrefix(name, "CreateSchedule:") {
		return noop.Span{}
	}
	_, span := t.Start(ctx, name, o...)
	return span
}

// namedLogs gives the SDK's log the names that ours has.
type namedLogs struct{ interceptor.Tracer }

func (namedLogs) GetLogger(l log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	span, ok := ref.(interface{ SpanContext() trace.SpanContext })
	if !ok || !span.SpanContext().IsValid() {
		return l
	}
	return log.With(l, traceKey, span.SpanContext().TraceID().String(), spanKey, span.SpanContext().SpanID().String())
}
