package dispatch

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"earshot/internal/change"
)

// span returns the span of a start. A group may come from several requests. The span belongs to the
// trace of the first sampled request and links to the others. Deliveries from the sweep have no
// request and begin a new trace.
func (d *Dispatcher) span(ctx context.Context, group []change.PendingDelivery) (context.Context, trace.Span) {
	if !d.traces.On() {
		return ctx, noop.Span{}
	}
	var parent trace.SpanContext
	var links []trace.Link
	for _, one := range group {
		switch of := one.Trace; {
		case of == nil || of.Equal(parent):
		case !parent.IsValid() || (of.IsSampled() && !parent.IsSampled()):
			parent = *of
		case of.IsSampled() && (len(links) == 0 || !of.Equal(links[len(links)-1].SpanContext)):
			links = append(links, trace.Link{SpanContext: *of})
		}
	}
	if parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	return d.traces.Tracer().Start(ctx, "start", trace.WithLinks(links...),
		trace.WithAttributes(attribute.Int("earshot.deliveries", len(group)), attribute.String("earshot.event_type", group[0].EventType)))
}
