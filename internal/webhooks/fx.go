package webhooks

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/postgres"
	"earshot/internal/seal"
	"earshot/internal/send"
)

// Module provides the Service. It also provides the guard that checks URLs, and the box that seals
// secrets and URLs; the delivery of events shares both.
var Module = fx.Module("webhooks", fx.Provide(
	func(c config.Config) send.Guard {
		return send.NewGuard(c.WebhookAllowCIDRs, c.WebhookAllowHTTP).Denying(c.WebhookDenyCIDRs)
	},
	func(c config.Config) (*seal.Box, error) { return NewBox(c.SecretKeys) },
	func(lc fx.Lifecycle, s *postgres.DB, changes *change.Runner, g send.Guard, b *seal.Box, c config.Config, log *slog.Logger) *Service {
		w := New(s, changes, g, b, Settings{Cap: c.WebhookCap, FeedOff: !c.EventFeed}, log)
		lc.Append(fx.Hook{OnStart: func(ctx context.Context) error { w.warnOfUnreadable(ctx); return nil }})
		return w
	},
))
