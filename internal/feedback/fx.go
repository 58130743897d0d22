package feedback

import (
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
	func(c config.Config) (*seal.Box, error) {
		box := seal.New()
		for _, k := range c.SecretKeys {
			if err := box.Add(k.ID, k.Key); err != nil {
				return nil, err
			}
		}
		return box, nil
	},
	func(s *store.Store, d Dispatcher, g send.Guard, b *seal.Box, c config.Config, log *slog.Logger) *Service {
		return New(s, d, g, b, Settings{
			ContactCapFree: c.ContactCapFree, ContactCapPro: c.ContactCapPro,
			WebhookCap: c.WebhookCap, EmailHashKey: c.EmailHashKey,
			CommentEditWindow: c.CommentEditWindow,
		}, log)
	},
))
