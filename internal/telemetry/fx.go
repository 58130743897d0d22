package telemetry

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/config"
)

// Module provides the Metrics and serves them. Who counts needs them, so they are
// served for longer than anybody counts.
var Module = fx.Module("telemetry", fx.Provide(func(lc fx.Lifecycle, c config.Config, log *slog.Logger) (*Metrics, error) {
	m, err := New(c.MetricsListen, log)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.Hook{OnStart: m.Start, OnStop: func(context.Context) error { return m.Stop() }})
	return m, nil
}))
