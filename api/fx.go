package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/fx"

	"earshot/internal/config"
	"earshot/internal/feedback"
)

const (
	// A client that takes longer holds a connection for nothing.
	headerTimeout = 10 * time.Second
	// The largest body over a slow line.
	bodyTimeout = time.Minute
	idleTimeout = 2 * time.Minute
)

// Handler provides the API and, as an http.Handler, what serves it. It needs the
// checks of /readyz, as a slice of Check.
var Handler = fx.Provide(
	func(f *feedback.Service, c config.Config, checks []Check, log *slog.Logger) (*API, error) {
		return New(f, Options{RateLimit: c.RateLimit, Checks: checks, Log: log})
	},
	func(a *API) http.Handler { return a },
)

// Fail ends the service with an error.
type Fail func(error)

// Module serves the Handler at the address of the settings.
var Module = fx.Module("api", Handler, fx.Invoke(serve))

func serve(lc fx.Lifecycle, fail Fail, h http.Handler, c config.Config, log *slog.Logger) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
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
				// Requests that take longer than the drain time are cut off; their
				// transactions roll back.
				log.WarnContext(ctx, "requests were cut off", "error", err)
				return server.Close()
			}
			return nil
		},
	})
}
