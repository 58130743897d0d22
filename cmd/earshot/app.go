package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"earshot/api"
	"earshot/dispatch"
	"earshot/internal/app"
	"earshot/internal/config"
	"earshot/internal/memory"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
	"earshot/internal/telemetry"
	"earshot/mcp"
	"earshot/web"
	"earshot/worker"
)

// role selects the parts that a process runs. The usual set-up runs API and worker in one process:
// the first attempt of a delivery then skips the task queue.
type role int

const (
	roleAPI role = 1 << iota
	roleWorker
)

// startTimeout bounds the start. The database must answer within it.
const startTimeout = 15 * time.Second

// application builds the service with fx.
func application(c config.Config, temporal client.Options, l *slog.Logger, r role, fail api.Fail) fx.Option {
	options := []fx.Option{
		fx.Supply(c, temporal, l, fail, api.Version(builtFrom().Version)),
		fx.WithLogger(func() fxevent.Logger {
			e := &fxevent.SlogLogger{Logger: l}
			e.UseLogLevel(slog.LevelDebug)
			return e
		}),
		fx.StartTimeout(startTimeout),
		// After the drain delay, five steps each get the drain time: requests, workflow starts, and
		// three kinds of worker tasks in turn. Their follow-up work takes seconds.
		fx.StopTimeout(c.DrainDelay + 5*c.DrainTimeout + startTimeout),
		app.Module,
	}
	// Parts start in this order and stop in reverse. The API stops first, because the workflows of
	// accepted requests still have to start. Each part is an fx.Module: fx would invoke a plain
	// fx.Invoke after all modules.
	if r&roleWorker != 0 {
		options = append(options, worker.Module)
	} else {
		options = append(options, worker.Sweep)
	}
	options = append(options, dispatch.Drain)
	if r&roleAPI != 0 {
		options = append(options, api.Module, mcp.Module, web.Module)
	} else {
		options = append(options, api.Health)
	}
	options = append(options, fx.Provide(readiness(r)))
	return fx.Options(options...)
}

// readiness provides the checks of /readyz.
func readiness(r role) any {
	base := func(s *postgres.DB, temporal *dispatch.Connection) []api.Check {
		return []api.Check{
			{Name: "postgres", Run: s.Ping},
			{Name: "schema", Run: func(ctx context.Context) error { return migrate.CheckSchema(ctx, s) }},
			{Name: "temporal", Run: func(ctx context.Context) error {
				c, err := temporal.Client(ctx)
				if err != nil {
					return err
				}
				_, err = c.CheckHealth(ctx, &client.CheckHealthRequest{})
				return err
			}},
		}
	}
	if r&roleWorker == 0 {
		return base
	}
	return func(s *postgres.DB, temporal *dispatch.Connection, w *worker.Worker) []api.Check {
		return append(base(s, temporal), api.Check{Name: "worker", Run: func(context.Context) error {
			if !w.Running() {
				return errors.New("the worker hasn't come up yet")
			}
			return nil
		}})
	}
}

// runService runs the service until ctx ends or a part fails, then stops it in order. Environ has
// KEY=value pairs as os.Environ returns them. The structured log goes to logs.
func runService(ctx context.Context, environ []string, r role, logs io.Writer) error {
	c, err := config.Load(environ)
	if err != nil {
		return err
	}
	memory.Limit()
	l := newLogger(c, logs)
	temporal, err := temporalOptions(environ, l)
	if err != nil {
		return err
	}
	l.Info("starting", "settings", c, "temporal", temporal.HostPort, "namespace", temporal.Namespace)
	// fx.App.Run would handle the signals itself. Here the second Ctrl-C has to kill the process.
	broken, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	service := fx.New(application(c, temporal, l, r, api.Fail(fail)))
	if err := start(ctx, service); err != nil {
		return plainly(err)
	}
	<-broken.Done()
	var failed error
	if ctx.Err() == nil {
		failed = context.Cause(broken)
	}
	l.Info("stopping")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StopTimeout())
	defer cancel()
	if err := service.Stop(stop); err != nil {
		return plainly(err)
	}
	l.Info("stopped")
	return failed
}

func start(ctx context.Context, service *fx.App) error {
	ctx, cancel := context.WithTimeout(ctx, service.StartTimeout())
	defer cancel()
	return service.Start(ctx)
}

// plainly strips fx's list of constructors from an error and returns the cause.
func plainly(err error) error {
	if errors.Is(err, migrate.ErrSchemaBehind) {
		return migrate.ErrSchemaBehind
	}
	return errors.Wrap(err, "run the service")
}

func newLogger(c config.Config, to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "text" {
		return slog.New(telemetry.TracedLogs(slog.NewTextHandler(to, o)))
	}
	return slog.New(telemetry.TracedLogs(slog.NewJSONHandler(to, o)))
}

// temporalOptions reads Temporal's own settings (TEMPORAL_ADDRESS, …).
func temporalOptions(environ []string, l *slog.Logger) (client.Options, error) {
	environ, err := config.TemporalEnviron(environ)
	if err != nil {
		return client.Options{}, err
	}
	o, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: config.Environ(environ)})
	if err != nil {
		return client.Options{}, errors.Wrap(err, "read Temporal's settings")
	}
	if o.HostPort == "" {
		o.HostPort = client.DefaultHostPort
	}
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	o.Logger = log.NewStructuredLogger(l.With("part", "temporal-sdk"))
	return o, nil
}
