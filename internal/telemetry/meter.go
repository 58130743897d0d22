package telemetry

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Meter makes the instruments of Earshot's own metrics. Those of the zero Meter count nothing. A
// label never contains an id, because the number of time series must stay bounded.
type Meter struct {
	of       metric.Meter
	registry *prometheus.Registry
}

// Seconds are bounds for operations from milliseconds to a minute, such as a request or an attempt.
var Seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Counter makes a counter, which /metrics shows with the suffix _total. The counter starts at 0
// with each of the given labels. Otherwise the first occurrence of a rare event would not be an
// increase.
func (m Meter) Counter(name, help string, from ...metric.MeasurementOption) metric.Int64Counter {
	c, err := m.meter().Int64Counter(name, metric.WithDescription(help))
	must(name, err)
	for _, labels := range from {
		c.Add(context.Background(), 0, labels.(metric.AddOption))
	}
	return c
}

// Histogram makes a histogram of seconds, which /metrics shows with the suffix _seconds.
func (m Meter) Histogram(name, help string, bounds []float64) metric.Float64Histogram {
	h, err := m.meter().Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(bounds...))
	must(name, err)
	return h
}

// Sizes makes a histogram of counts.
func (m Meter) Sizes(name, help string, bounds []float64) metric.Int64Histogram {
	h, err := m.meter().Int64Histogram(name, metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	must(name, err)
	return h
}

// Set records one value of a gauge or counter during a scrape. The values of one instrument have the
// same names of labels, and no two have the same labels. Otherwise the whole scrape fails.
type Set func(value float64, labels ...attribute.KeyValue)

// Gauge makes a gauge that is read for each scrape. Labels without a value in that read are
// omitted. A read may take as long as a scraper waits, and may call Postgres and Temporal. It runs at
// the same time as other reads, also of another scrape.
func (m Meter) Gauge(name, help string, read func(set Set)) {
	m.register(reading{name: name, help: help, kind: prometheus.GaugeValue, read: read})
}

// CounterOf makes a counter for a value that is already counted elsewhere. /metrics shows it with
// the suffix _total.
func (m Meter) CounterOf(name, help string, read func(set Set)) {
	m.register(reading{name: name + "_total", help: help, kind: prometheus.CounterValue, read: read})
}

func (m Meter) register(r reading) {
	if m.registry != nil {
		m.registry.MustRegister(r)
	}
}

// reading is an instrument whose values are read for each scrape. It is not an instrument of
// OpenTelemetry, because OpenTelemetry holds a lock while it reads. A call of Temporal's SDK that
// makes an instrument waits for this lock. So a read that waits for the call would never end.
type reading struct {
	name, help string
	kind       prometheus.ValueType
	read       func(set Set)
}

// Describe sends nothing, because the labels are known only after a read.
func (r reading) Describe(chan<- *prometheus.Desc) {}

// Collect reads the values and then sends them, because a read may hold a lock. The registry reads all
// instruments in parallel and holds no lock.
func (r reading) Collect(values chan<- prometheus.Metric) {
	var all []prometheus.Metric
	r.read(func(value float64, labels ...attribute.KeyValue) {
		of := prometheus.Labels{}
		for _, l := range labels {
			of[string(l.Key)] = l.Value.String()
		}
		all = append(all, prometheus.MustNewConstMetric(prometheus.NewDesc(r.name, r.help, nil, of), r.kind, value))
	})
	for _, m := range all {
		values <- m
	}
}

func (m Meter) meter() metric.Meter {
	if m.of == nil {
		return noop.Meter{}
	}
	return m.of
}

// Labels returns the labels of one measurement: names and values in turn.
func Labels(pairs ...string) metric.MeasurementOption {
	attrs := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		attrs = append(attrs, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// must panics for an invalid name or invalid bounds, which the first start reveals.
func must(name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("make the metric %s: %v", name, err))
	}
}
