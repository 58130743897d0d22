package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/fx"

	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/privacy"
	"earshot/internal/publicactions"
	"earshot/internal/ratelimit"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

// UseCases are the services that the operations call.
type UseCases struct {
	fx.In
	Access        *access.Service
	Contacts      *contacts.Service
	Feedback      *feedback.Service
	PublicActions *publicactions.Service
	Webhooks      *webhooks.Service
	Privacy       *privacy.Service
	Widget        *widget.Service
	// Subscribers handles the contacts that get e-mails about posts and the changelog.
	Subscribers *subscribers.Service
}

// Handler provides the API, also as an http.Handler. It needs the program's Version and the
// checks of /readyz, as a slice of Check.
var Handler = fx.Provide(
	func(u UseCases, limits *ratelimit.Keys, c config.Config, v Version, checks []Check, m *telemetry.Metrics, traces *telemetry.Traces, log *slog.Logger) (*API, error) {
		return New(u, Options{RateLimits: limits, Proxies: c.TrustedProxies, BounceSecret: c.MailBounceSecret, Checks: checks, Version: v, Meter: m.Meter(), Traces: traces, Log: log})
	},
	func(a *API) http.Handler { return a },
)

// Fail ends the service with an error.
type Fail func(error)

// Module serves the Handler at the address of the settings.
var Module = fx.Module("api", Handler, fx.Invoke(serve))

// Health serves NewHealth, for a process without the API.
var Health = fx.Module("health", fx.Invoke(serveHealth))

// giveBackTimeout is some hundred times what the statement takes. After it, the tokens expire.
const giveBackTimeout = time.Second

func serve(lc fx.Lifecycle, fail Fail, a *API, c config.Config, log *slog.Logger) {
	server := NewServer(a, StandardLimits(), log)
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
			if err != nil {
				return errors.Wrap(err, "listen (EARSHOT_LISTEN chooses the address)")
			}
			log.InfoContext(ctx, "serving", "address", listener.Addr().String())
			go func() {
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					fail(errors.Wrap(err, "serve"))
				}
			}()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			a.Leave()
			select {
			case <-time.After(c.DrainDelay):
			case <-ctx.Done():
			}
			ctx, cancel := context.WithTimeout(ctx, c.DrainTimeout)
			defer cancel()
			if err := server.Shutdown(ctx); err != nil {
				log.WarnContext(ctx, "requests were cut off", "error", err)
			}
			// The time for requests may be used up by now.
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
			defer cancel()
			if err := a.server.limits.GiveBack(ctx); err != nil {
				log.WarnContext(ctx, "leased tokens of rate limits expire unused", "error", err)
			}
			return nil
		},
	})
}

func serveHealth(lc fx.Lifecycle, checks []Check, c config.Config, log *slog.Logger) {
	server := NewServer(NewHealth(checks, log), StandardLimits(), log)
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.HealthListen)
			if errors.Is(err, syscall.EADDRINUSE) && c.HealthListen == config.DefaultHealthListen {
				log.WarnContext(ctx, "serving no /healthz, because its port is taken: EARSHOT_HEALTH_LISTEN chooses another", "address", c.HealthListen)
				return nil
			}
			if err != nil {
				return errors.Wrap(err, "listen (EARSHOT_HEALTH_LISTEN chooses the address)")
			}
			log.InfoContext(ctx, "serving health", "address", listener.Addr().String())
			go func() {
				// The worker continues without it.
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					log.Error("health is not served any more", "error", err)
				}
			}()
			return nil
		},
		OnStop: server.Shutdown, // no answer takes longer than the checks
	})
}
