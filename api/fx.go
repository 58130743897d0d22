package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-faster/errors"
	"go.uber.org/fx"

	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/telemetry"
	"earshot/internal/webhooks"
)

// Handler provides the API and, as an http.Handler, what serves it. It needs the
// checks of /readyz, as a slice of Check.
var Handler = fx.Provide(
	func(a *access.Service, p *contacts.Service, f *feedback.Service, w *webhooks.Service, c config.Config, checks []Check, m *telemetry.Metrics, traces *telemetry.Traces, log *slog.Logger) (*API, error) {
		return New(UseCases{Access: a, Contacts: p, Feedback: f, Webhooks: w}, Options{RateLimit: c.RateLimit, Proxies: c.TrustedProxies, Checks: checks, Meter: m.Meter(), Traces: traces, Log: log})
	},
	func(a *API) http.Handler { return a },
)

// Fail ends the service with an error.
type Fail func(error)

// Module serves the Handler at the address of the settings.
var Module = fx.Module("api", Handler, fx.Invoke(serve))

func serve(lc fx.Lifecycle, fail Fail, h http.Handler, c config.Config, log *slog.Logger) {
	server := NewServer(h, StandardLimits(), log)
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
			ctx, cancel := context.WithTimeout(ctx, c.DrainTimeout)
			defer cancel()
			if err := server.Shutdown(ctx); err != nil {
				log.WarnContext(ctx, "requests were cut off", "error", err)
			}
			return nil
		},
	})
}
