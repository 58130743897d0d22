package feedback

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/config"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
)

// Module provides the domain, and what it shares with the deliverer: the
// judgement of URLs and the box that webhook secrets are sealed in.
var Module = fx.Module("feedback", fx.Provide(
	func(c config.Config) send.Guard { return send.NewGuard(c.WebhookAllowCIDRs, c.WebhookAllowHTTP) },
	func(c config.Config) (*seal.Box, error) { return NewBox(c.SecretKeys) },
	func(lc fx.Lifecycle, s *store.Store, d Dispatcher, g send.Guard, b *seal.Box, c config.Config, log *slog.Logger) *Service {
		f := New(s, d, g, b, Settings{
			ContactCapFree: c.ContactCapFree, ContactCapPro: c.ContactCapPro,
			WebhookCap: c.WebhookCap, EmailHashKey: c.EmailHashKey,
			CommentEditWindow: c.CommentEditWindow,
		}, log)
		lc.Append(fx.Hook{OnStart: func(ctx context.Context) error { f.warnOfUnreadable(ctx); return nil }})
		lc.Append(hashAuthors(f, log))
		return f
	},
))

// hashAuthors runs beside the service, because there may be a million rows, and no
// request needs it to be through. After an error the next start goes on.
func hashAuthors(f *Service, log *slog.Logger) fx.Hook {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	return fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				defer close(done)
				if err := f.HashAuthors(ctx); err != nil && ctx.Err() == nil {
					log.WarnContext(ctx, "some contacts' counts stay too low until the next start", "error", err)
				}
			}()
			return nil
		},
		OnStop: func(context.Context) error { stop(); <-done; return nil },
	}
}
