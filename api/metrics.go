package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"earshot/internal/telemetry"
)

// The rate limits that can refuse a request.
const (
	keyBudget   = "key"
	refusedOnes = "refused_keys"
)

// statusLeft is the code of a request whose client left before the answer. Proxies use the same
// code.
const statusLeft = 499

type metrics struct {
	requests metric.Float64Histogram
	refusals metric.Int64Counter
}

func newMetrics(m telemetry.Meter) metrics {
	return metrics{
		requests: m.Histogram("earshot_request_duration", "Requests, from their headers to the last byte of the answer.",
			telemetry.Seconds),
		refusals: m.Counter("earshot_rate_limit_refusals", "Requests that a rate limit refused.",
			telemetry.Labels("limit", keyBudget), telemetry.Labels("limit", refusedOnes)),
	}
}

// measure counts the request by its operation and its code. A tool call counts twice: as the
// request to its surface, and as the operation that it runs.
func (s *server) measure(c *gin.Context) {
	began := time.Now()
	c.Next()
	status := c.Writer.Status()
	if status == http.StatusInternalServerError && c.Request.Context().Err() != nil {
		status = statusLeft
	}
	s.metrics.requests.Record(c, time.Since(began).Seconds(),
		telemetry.Labels("operation", s.operationName(c), "code", strconv.Itoa(status)))
}

// operationName returns the contract's id of the operation, or the route if the contract doesn't
// have it. Both come from a fixed list.
func (s *server) operationName(c *gin.Context) string {
	if id := s.operation(c).ID; id != "" {
		return id
	}
	// The pages have their own routes, so the matched pattern is the name.
	if page := c.Request.Pattern; page != "" {
		return strings.TrimPrefix(page, "GET ")
	}
	if route := c.FullPath(); route != "" {
		return route
	}
	return "none"
}

// countRefusal counts a request that a rate limit refused.
func (s *server) countRefusal(c *gin.Context, limit string) {
	s.metrics.refusals.Add(c, 1, telemetry.Labels("limit", limit))
}

// show adds the state of /readyz to the metrics.
func (r *readiness) show(m telemetry.Meter) {
	if len(r.checks) == 0 {
		return
	}
	m.Gauge("earshot_ready", "1 if the dependency is available, or 0, as in /readyz.", func(set telemetry.Set) {
		checks, _ := r.current(context.Background()).body["checks"].(gin.H)
		for name, word := range checks {
			up := 0.0
			if word == checkOK {
				up = 1
			}
			set(up, attribute.String("check", name))
		}
	})
}
