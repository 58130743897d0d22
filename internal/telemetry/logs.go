package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

const (
	traceKey = "traceId"
	spanKey  = "spanId"
)

// TracedLogs returns a handler that adds the ids of the current trace and span to each line.
func TracedLogs(to slog.Handler) slog.Handler { return tracedLogs{to} }

type tracedLogs struct{ slog.Handler }

func (h tracedLogs) Handle(ctx context.Context, line slog.Record) error {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		line.AddAttrs(slog.String(traceKey, of.TraceID().String()), slog.String(spanKey, of.SpanID().String()))
	}
	return h.Handler.Handle(ctx, line) //nolint:wrapcheck // it is the other's
}

func (h tracedLogs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedLogs{h.Handler.WithAttrs(attrs)}
}

func (h tracedLogs) WithGroup(name string) slog.Handler { return tracedLogs{h.Handler.WithGroup(name)} }
