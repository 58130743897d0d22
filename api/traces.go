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

// trace makes a span of an operation, and of a message to the tools. A request begins a
// trace of its own, which our sampler keeps or not: whoever may ask could otherwise have
// all of their requests kept, or make theirs part of somebody's trace. The caller's
// own trace is a link. What a tool calls is part of its message.
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

// callersSpan is that of the header traceparent, without what else the caller wrote.
func callersSpan(h http.Header) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": h.Get("traceparent")})
	return trace.SpanContextFromContext(ctx)
}
