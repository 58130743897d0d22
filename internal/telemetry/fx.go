package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"earshot/internal/config"
)

// Module provides the Metrics and serves them, and the Traces. Who counts needs them, so
// they are served for longer than anybody counts.
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

// lastTraces is how long a stop waits for a collector, which mustn't keep a process.
const lastTraces = 2 * time.Second
