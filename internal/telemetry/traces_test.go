package telemetry_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/telemetry"
)

// This test sets environment variables, so it can't be parallel.
func TestTracesAreMadeWhereACollectorIsNamed(t *testing.T) {
	for _, of := range []struct {
		name, value string
		on          bool
		problem     string
	}{
		{name: "OTEL_SERVICE_NAME", value: "earshot"},
		{name: "OTEL_EXPORTER_OTLP_ENDPOINT", value: "http://127.0.0.1:1", on: true},
		{name: "OTEL_SDK_DISABLED", value: "true"},
		{name: "OTEL_SDK_DISABLED", value: "false", on: true},
		{name: "OTEL_TRACES_EXPORTER", value: "none"},
		{name: "OTEL_TRACES_EXPORTER", value: "zipkin", problem: `OTEL_TRACES_EXPORTER: "zipkin" is not there`},
		{name: "OTEL_TRACES_EXPORTER", value: "otlp", on: true},
		{name: "OTEL_EXPORTER_OTLP_PROTOCOL", value: "grpc", problem: `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not there`},
		{name: "OTEL_EXPORTER_OTLP_PROTOCOL", value: "http/protobuf", on: true},
	} {
		t.Setenv(of.name, of.value)
		traces, err := telemetry.TracesFromEnvironment(t.Context(), slog.New(slog.DiscardHandler))
		if of.problem != "" {
			require.ErrorContains(t, err, of.problem)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, of.on, traces.On(), "%s=%s", of.name, of.value)
		require.NoError(t, traces.Stop(t.Context()))
	}
}

func TestWhereThereAreNoTracesNothingIsSaidToTemporal(t *testing.T) {
	t.Parallel()
	var off *telemetry.Traces
	interceptors, err := off.Interceptors()
	require.NoError(t, err)
	require.Empty(t, interceptors)
	require.Empty(t, telemetry.TraceParent(t.Context()))
}
