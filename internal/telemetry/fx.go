package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"earshot/internal/config"
)

// Module provides the Metrics and the Traces, and serves the metrics. Components that count depend
// on the Metrics, so the metrics server stops after them.
var Module = fx.Module("telemetry", fx.Provide(func(lc fx.Lifecycle, c config.Config, log *slog.Logger) (*Metrics, error) {
	m, err := New(c.MetricsListen, c.Profiles, log)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.Hook{OnStart: m.Start, OnStop: func(context.Context) error { return m.Stop() }})
	return m, nil
}, func(lc fx.Lifecycle, log *slog.Logger) (*Traces, error) {
	t, err := TracesFromEnvironment(context.Background(), log)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, lastTraces)
		defer cancel()
		if err := t.Stop(ctx); err != nil {
			log.WarnContext(ctx, "traces", "error", err)
		}
		return nil
	}})
	return t, nil
}))

// lastTraces limits the time that a stop waits for a collector, so that the collector can't delay
// the end of the process.
const lastTraces = 2 * time.Second
