package worker

import (
	"context"
	"log/slog"
	"sync"

	"go.temporal.io/sdk/worker"
	"go.uber.org/fx"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/internal/config"
	"earshot/internal/mail"
	"earshot/internal/postgres"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/telemetry"
)

// version returns the zero value when the settings name no version.
func version(c config.Config) worker.WorkerDeploymentVersion {
	return worker.WorkerDeploymentVersion{DeploymentName: c.WorkerDeployment, BuildID: c.WorkerBuildID}
}

// Sweep replaces Module in a process without a worker. It runs one sweep.
var Sweep = fx.Module("sweep", fx.Invoke(func(lc fx.Lifecycle, c *dispatch.Connection, log *slog.Logger) {
	ctx, quit := context.WithCancel(context.Background())
	var swept sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { swept.Go(func() { SweepAtStart(ctx, c, log) }); return nil },
		OnStop:  func(context.Context) error { quit(); swept.Wait(); return nil },
	})
}))

// Module runs the worker. It needs dispatch.Module.
var Module = fx.Module("worker",
	mail.Module,
	activities.Module,
	fx.Provide(
		func(m *telemetry.Metrics) *activities.Counts { return activities.NewCounts(m.Meter()) },
		func(lc fx.Lifecycle, c config.Config) *send.Sender {
			sender := send.New(send.Options{AllowCIDRs: c.WebhookAllowCIDRs, DenyCIDRs: c.WebhookDenyCIDRs, AllowHTTP: c.WebhookAllowHTTP})
			lc.Append(fx.Hook{OnStop: func(context.Context) error { sender.Close(); return nil }})
			return sender
		},
		func(s *postgres.DB, sender *send.Sender, box *seal.Box, dispatcher *dispatch.Dispatcher, c config.Config, counts *activities.Counts, log *slog.Logger) *activities.Deliveries {
			d := activities.NewDeliveries(s, sender, box, dispatcher, activities.DeliveryOptions{
				Delays: c.WebhookRetryDelays, CountAttempts: c.WebhookDisableCounts == config.CountAttempts, Counts: counts, Log: log,
			})
			dispatcher.GatherWhere(d.Lags)
			return d
		},
		func(d *dispatch.Dispatcher) activities.Engine { return d },
		func(s *postgres.DB, set config.Config, counts *activities.Counts, log *slog.Logger) *activities.Retention {
			return activities.NewRetention(s, set.Retention, counts, log)
		},
		func(set config.Config, log *slog.Logger) Options {
			return Options{Drain: set.DrainTimeout, Log: log, Version: version(set)}
		},
		func(lc fx.Lifecycle, c *dispatch.Connection, does activities.All, o Options) *Worker {
			w := New(c, does, o)
			lc.Append(fx.Hook{
				OnStart: func(context.Context) error { w.Start(); return nil },
				OnStop:  func(context.Context) error { w.Stop(); return nil },
			})
			return w
		},
	),
	fx.Invoke(func(*Worker) {}),
)
