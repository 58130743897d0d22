// Package telemetry serves the metrics of a process over HTTP in Prometheus's format: those of
// Temporal's SDK and Earshot's own. It listens on a separate address, so that workers have it too
// and it stays private. No metric names a webhook, a receiver or an organization.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-faster/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// A scraper sends a few lines and reads about 100 kB.
const requestTimeout = 10 * time.Second

// seconds are the bounds of the SDK's timers. They range from a call to a local Temporal to a
// workflow task that uses all its time. OpenTelemetry's default bounds are meant for milliseconds.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Metrics are the metrics of one process. Without an address, they count nothing and have no
// server.
type Metrics struct {
	address  string
	log      *slog.Logger
	handler  client.MetricsHandler
	meter    Meter
	server   *http.Server
	listener net.Listener
}

// New makes the metrics of a process. Start serves them. The address is host:port, or "" for none.
// The argument profiles adds the profiles of the process to the server.
func New(address string, profiles bool, log *slog.Logger) (*Metrics, error) {
	m := &Metrics{address: address, log: log}
	if address == "" {
		return m, nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(
		exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, errors.Wrap(err, "make the exporter of metrics")
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(metric.NewView(
		metric.Instrument{Name: "temporal_*", Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: seconds}},
	)))
	m.meter = Meter{of: provider.Meter("earshot"), registry: registry}
	m.handler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: m.meter.of, UseMonotonicCounters: true,
		OnError: func(err error) { log.Warn("a metric can't be counted", "error", err) },
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /healthz", live)
	if profiles {
		serveProfiles(mux)
	}
	m.server = &http.Server{Handler: mux, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout}
	return m, nil
}

// live reports that the process answers.
func live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`)
}

// Handler returns the handler for the options of a Temporal client, or nil without an address.
func (m *Metrics) Handler() client.MetricsHandler { return m.handler }

// Meter returns the meter for the instruments of the process.
func (m *Metrics) Meter() Meter { return m.meter }

// Address returns the address of the server, or "" if there is none. After Start it contains the
// port that the system chose for port 0.
func (m *Metrics) Address() string {
	if m.listener == nil {
		return m.address
	}
	return m.listener.Addr().String()
}

// Start serves the metrics in the background.
func (m *Metrics) Start(ctx context.Context) error {
	if m.server == nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", m.address)
	if err != nil {
		return errors.Wrap(err, "listen (EARSHOT_METRICS_LISTEN chooses the address)")
	}
	m.listener = listener
	m.log.InfoContext(ctx, "serving metrics", "address", m.Address())
	go func() {
		// The service continues without its metrics.
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return nil
}

// Stop closes the listener and aborts the current requests.
func (m *Metrics) Stop() error {
	if m.server == nil {
		return nil
	}
	return m.server.Close()
}
