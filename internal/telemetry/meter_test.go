package telemetry_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"earshot/internal/telemetry"
)

// A read of earshot_ready calls Temporal. The SDK makes an instrument for the first call of a kind
// and for the first failure. OpenTelemetry's own callbacks would wait for themselves here, and so
// would all later scrapes.
func TestAScrapeEndsAlthoughAReadMakesAnInstrument(t *testing.T) {
	t.Parallel()
	m, err := telemetry.New("127.0.0.1:0", false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	m.Meter().Gauge("earshot_example", "An example.", func(set telemetry.Set) {
		m.Handler().Counter("temporal_request_failure").Inc(1)
		set(1, attribute.String("check", "temporal"))
		set(0, attribute.String("check", "postgres"))
	})
	m.Meter().CounterOf("earshot_example_reads", "Another example.", func(set telemetry.Set) { set(3) })
	require.NoError(t, m.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, m.Stop()) })

	// The limit turns an endless scrape into a failure.
	scraper := http.Client{Timeout: time.Minute}
	answer, err := scraper.Get("http://" + m.Address() + "/metrics")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `# TYPE earshot_example gauge
earshot_example{check="postgres"} 0
earshot_example{check="temporal"} 1
# HELP earshot_example_reads_total Another example.
# TYPE earshot_example_reads_total counter
earshot_example_reads_total 3
`)
}
