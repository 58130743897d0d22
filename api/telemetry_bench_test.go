package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"earshot/api"
	"earshot/internal/ratelimit"
	"earshot/internal/telemetry"
)

// nowhere accepts spans and discards them.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// BenchmarkWatching measures the time that metrics and traces add to the cheapest kind of request,
// one without a key.
func BenchmarkWatching(b *testing.B) {
	metrics, err := telemetry.New("127.0.0.1:0", false, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	traces := func(sampler sdktrace.Sampler) *telemetry.Traces {
		t, err := telemetry.NewTraces(b.Context(), sdktrace.WithBatcher(nowhere{}), sdktrace.WithSampler(sampler))
		require.NoError(b, err)
		return t
	}
	for _, of := range []struct {
		name string
		api.Options
	}{
		{"nothing", api.Options{}},
		{"metrics", api.Options{Meter: metrics.Meter()}},
		{"metrics and traces that are dropped", api.Options{Meter: metrics.Meter(), Traces: traces(sdktrace.NeverSample())}},
		{"metrics and traces that are kept", api.Options{Meter: metrics.Meter(), Traces: traces(sdktrace.AlwaysSample())}},
	} {
		b.Run(of.name, func(b *testing.B) {
			of.RateLimits, of.Log = ratelimit.NewKeys(nil, 1), slog.New(slog.DiscardHandler)
			handler, err := api.New(api.UseCases{}, of.Options)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/boards", nil))
			}
		})
	}
}
