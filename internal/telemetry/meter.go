package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Meter makes the instruments of Earshot's own metrics. Those of the zero Meter count nothing. A
// label never contains an id, because the number of time series must stay bounded.
type Meter struct{ of metric.Meter }

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

// Set records one value of a gauge or counter during a scrape.
type Set func(value float64, labels ...attribute.KeyValue)

// Gauge makes a gauge that is read for each scrape. Labels without a value in that read are
// omitted.
func (m Meter) Gauge(name, help string, read func(set Set)) {
	_, err := m.meter().Float64ObservableGauge(name, metric.WithDescription(help), metric.WithFloat64Callback(reader(read)))
	must(name, err)
}

// CounterOf makes a counter for a value that is already counted elsewhere.
func (m Meter) CounterOf(name, help string, read func(set Set)) {
	_, err := m.meter().Float64ObservableCounter(name, metric.WithDescription(help), metric.WithFloat64Callback(reader(read)))
	must(name, err)
}

func reader(read func(set Set)) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		read(func(value float64, labels ...attribute.KeyValue) { o.Observe(value, metric.WithAttributes(labels...)) })
		return nil
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
