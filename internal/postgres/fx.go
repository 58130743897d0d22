package postgres

import (
	"context"
	"log/slog"
	"sync"

	"go.uber.org/fx"

	"earshot/internal/config"
	"earshot/internal/telemetry"
)

// Module provides the store, and keeps statistics of new tables.
var Module = fx.Module("postgres", fx.Provide(func(lc fx.Lifecycle, c config.Config, m *telemetry.Metrics, log *slog.Logger) (*DB, error) {
	s, err := Open(Options{URL: c.DatabaseURL, MaxConns: c.DatabaseMaxConns, Serving: true})
	if err != nil {
		return nil, err
	}
	s.measurePool(m.Meter())
	background, quit := context.WithCancel(context.Background())
	var statistics sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			statistics.Go(func() { s.KeepStatistics(background, log) })
			return nil
		},
		OnStop: func(context.Context) error {
			quit()
			statistics.Wait()
			s.Close()
			return nil
		},
	})
	return s, nil
}))
