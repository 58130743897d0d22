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

// Traces sends the spans of a process. Disabled Traces cost nothing.
type Traces struct {
	provider *sdktrace.TracerProvider // nil if disabled
}

// TracesFromEnvironment reads OpenTelemetry's standard variables. Without an endpoint it returns
// disabled Traces. OpenTelemetry itself reads the settings of the sampler, the batches, and the
// exporter's TLS, headers and timeouts.
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

// NewTraces makes Traces that send spans to the given processors.
func NewTraces(ctx context.Context, to ...sdktrace.TracerProviderOption) (*Traces, error) {
	who, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "earshot")),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Wrap(err, "read OTEL_RESOURCE_ATTRIBUTES")
	}
	return &Traces{sdktrace.NewTracerProvider(append(to, sdktrace.WithResource(who))...)}, nil
}

// On reports whether spans are sent.
func (t *Traces) On() bool { return t != nil && t.provider != nil }

// Tracer returns the tracer that begins traces. Span adds a part to a trace that has begun.
func (t *Traces) Tracer() trace.Tracer {
	if !t.On() {
		return noop.NewTracerProvider().Tracer(tracerName)
	}
	return t.provider.Tracer(tracerName)
}

// Stop sends the remaining spans.
func (t *Traces) Stop(ctx context.Context) error {
	if !t.On() {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return errors.Wrap(err, "send the last traces")
	}
	return nil
}

// Span begins a span in the trace of ctx. If that trace isn't recorded, the span does nothing.
func Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(tracerName).Start(ctx, name, trace.WithAttributes(attrs...))
}

// TraceParent returns the traceparent header for a request within ctx, or an empty string if the
// trace isn't sampled.
func TraceParent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, header)
	return header["traceparent"]
}

// Interceptors returns the interceptors for Temporal's clients and workers. They continue the
// traces in the headers of workflows and activities. Without traces there are none.
func (t *Traces) Interceptors() ([]interceptor.ClientInterceptor, error) {
	if !t.On() {
		return nil, nil
	}
	made, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: t.Tracer(), TextMapPropagator: propagation.TraceContext{}, DisableBaggage: true,
		// Queries come from operators and have no further effects.
		DisableQueryTracing: true,
		// An unreadable header must not stop a delivery.
		AllowInvalidParentSpans: true,
		SpanStarter:             startSpan,
	})
	if err != nil {
		return nil, errors.Wrap(err, "trace what Temporal does")
	}
	return []interceptor.ClientInterceptor{interceptor.NewTracingInterceptor(namedLogs{made})}, nil
}

// startSpan begins no span for a schedule. Otherwise each workflow of the schedule would carry that
// span in its header, and all of them would form one endless trace.
func startSpan(ctx context.Context, t trace.Tracer, name string, o ...trace.SpanStartOption) trace.Span {
	if strings.HasPrefix(name, "CreateSchedule:") {
		return noop.Span{}
	}
	_, span := t.Start(ctx, name, o...)
	return span
}

// namedLogs gives the trace attributes in the SDK's log the same names as in Earshot's log.
type namedLogs struct{ interceptor.Tracer }

func (namedLogs) GetLogger(l log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	span, ok := ref.(interface{ SpanContext() trace.SpanContext })
	if !ok || !span.SpanContext().IsValid() {
		return l
	}
	return log.With(l, traceKey, span.SpanContext().TraceID().String(), spanKey, span.SpanContext().SpanID().String())
}
