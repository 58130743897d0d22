package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// trace makes a span for an operation or for a message to the tools. Each request begins its own
// trace, and our sampler decides about recording it. Otherwise, a caller could have all of its
// requests recorded, or join another caller's trace. The caller's own trace becomes a link. The
// operations of a tool belong to the trace of the message.
func (s *server) trace(c *gin.Context) {
	id := s.operation(c).ID
	if !s.traces.On() || (id == "" && (c.Request.Method != http.MethodPost || c.FullPath() == "")) {
		return
	}
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("http.request.method", c.Request.Method), attribute.String("http.route", c.FullPath()),
	)}
	if callOf(c) == nil {
		options = append(options, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
		if caller := callersSpan(c.Request.Header); caller.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: caller}))
		}
	}
	ctx, span := s.traces.Tracer().Start(c.Request.Context(), s.operationName(c), options...)
	defer span.End()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
	status := c.Writer.Status()
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if caller, ok := callerOf(c); ok {
		span.SetAttributes(attribute.String("earshot.organization", caller.Organization.ID.String()))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// callersSpan returns the span of the header traceparent. It ignores the caller's other trace
// headers.
func callersSpan(h http.Header) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": h.Get("traceparent")})
	return trace.SpanContextFromContext(ctx)
}
