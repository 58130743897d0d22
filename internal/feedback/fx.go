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
		return f
	},
))
