package dispatch

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/telemetry"
)

// closeTimeout bounds the starts of runs that the worker's activities hand over while they end. A
// Temporal that answers needs milliseconds. For a Temporal that does not, Drain has already waited.
const closeTimeout = 2 * time.Second

// Module provides the connection to Temporal and the dispatcher to every process that makes changes.
// It needs client.Options and telemetry.Module.
var Module = fx.Module("dispatch", fx.Provide(
	func(lc fx.Lifecycle, o client.Options, m *telemetry.Metrics, traces *telemetry.Traces) (*Connection, error) {
		o.MetricsHandler = m.Handler()
		traced, err := traces.Interceptors()
		if err != nil {
			return nil, err
		}
		o.Interceptors = append(o.Interceptors, traced...)
		c := NewConnection(o)
		lc.Append(fx.Hook{OnStop: func(context.Context) error { c.Close(); return nil }})
		return c, nil
	},
	func(lc fx.Lifecycle, c *Connection, set config.Config, m *telemetry.Metrics, traces *telemetry.Traces, log *slog.Logger) *Dispatcher {
		d := New(c, set.DeliveryGroupMax, log)
		d.Measure(m.Meter())
		d.Trace(traces)
		if set.WorkerDeployment != "" {
			d.ThroughQueues()
		}
		lc.Append(fx.Hook{OnStop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, closeTimeout)
			defer cancel()
			d.Close(ctx)
			return nil
		}})
		return d
	},
	func(d *Dispatcher) change.Dispatcher { return d },
))

// Drain starts the waiting runs when the process stops. List it after the worker: fx stops parts in
// reverse order, so the worker of this process can still execute these runs. Module's own stop hook
// starts the runs that arrive later.
var Drain = fx.Module("drain", fx.Invoke(func(lc fx.Lifecycle, d *Dispatcher, set config.Config) {
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, set.DrainTimeout)
		defer cancel()
		d.Drain(ctx)
		return nil
	}})
}))
