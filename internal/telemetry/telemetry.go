// Package telemetry shows what a process counts: the metrics of Temporal's SDK
// and our own, which go the same way, in Prometheus's format over HTTP. It
// listens apart from the API, so that workers have it too and nobody outside sees
// it. It counts nothing that names a webhook, a receiver or an organization.
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

// A scraper sends a few lines and reads some 100 kB.
const requestTimeout = 10 * time.Second

// seconds are the bounds of the SDK's timers, from a call to a local Temporal up
// to a workflow task that uses all its time. OpenTelemetry's own are milliseconds.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Metrics are those of one process. Without an address it counts nothing and
// listens nowhere.
type Metrics struct {
	address  string
	log      *slog.Logger
	handler  client.MetricsHandler
	meter    Meter
	server   *http.Server
	listener net.Listener
}

// New makes the metrics of a process; nobody sees them before Start. The address
// is host:port, or "" for none. Profiles of the process are served there if they are wanted.
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
	m.meter = Meter{provider.Meter("earshot")}
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

// live tells that the process answers.
func live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`)
}

// Handler counts, for the options of a Temporal client; nil without an address.
func (m *Metrics) Handler() client.MetricsHandler { return m.handler }

// Meter makes the instruments of what the process itself counts.
func (m *Metrics) Meter() Meter { return m.meter }

// Address is where Start listens; "" is nowhere. After Start it holds the port
// that the system chose for port 0.
func (m *Metrics) Address() string {
	if m.listener == nil {
		return m.address
	}
	return m.listener.Addr().String()
}

// Start listens and serves in the background.
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
		// The service does its work without them.
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return nil
}

// Stop ends the listener and the requests that are under way.
func (m *Metrics) Stop() error {
	if m.server == nil {
		return nil
	}
	return m.server.Close()
}
