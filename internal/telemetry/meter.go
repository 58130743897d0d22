package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Meter makes the instruments of our own metrics. The zero Meter makes such that count
// nothing. A label never holds an id: there would be no end of them.
type Meter struct{ of metric.Meter }

// Seconds are bounds for what takes from milliseconds to a minute: a request, an attempt.
var Seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Counter makes a counter, which /metrics shows with _total behind its name. It is there,
// at 0, with each of the labels given, before anything is counted: else the first of
// something rare would be no increase.
func (m Meter) Counter(name, help string, from ...metric.MeasurementOption) metric.Int64Counter {
	c, err := m.meter().Int64Counter(name, metric.WithDescription(help))
	must(name, err)
	for _, labels := range from {
		c.Add(context.Background(), 0, labels.(metric.AddOption))
	}
	return c
}

// Histogram makes one of seconds, whose name /metrics shows with _seconds behind it.
func (m Meter) Histogram(name, help string, bounds []float64) metric.Float64Histogram {
	h, err := m.meter().Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(bounds...))
	must(name, err)
	return h
}

// Sizes makes a histogram of numbers of things.
func (m Meter) Sizes(name, help string, bounds []float64) metric.Int64Histogram {
	h, err := m.meter().Int64Histogram(name, metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	must(name, err)
	return h
}

// Set tells one value of a gauge or counter that is read when somebody asks for it.
type Set func(value float64, labels ...attribute.KeyValue)

// Gauge makes one that is read whenever somebody asks for the metrics. What isn't set
// then isn't shown.
func (m Meter) Gauge(name, help string, read func(set Set)) {
	_, err := m.meter().Float64ObservableGauge(name, metric.WithDescription(help), metric.WithFloat64Callback(reader(read)))
	must(name, err)
}

// CounterOf makes a counter of what something else counts already.
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

// Labels are those of one measurement: names and values in turn.
func Labels(pairs ...string) metric.MeasurementOption {
	attrs := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		attrs = append(attrs, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// must panics because of a name or bounds that are none, which the first start shows.
func must(name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("make the metric %s: %v", name, err))
	}
}
