package subscribers

import (
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/postgres"
)

// Module provides the Service.
var Module = fx.Module("subscribers", fx.Provide(
	func(s *postgres.DB, changes *change.Runner, c config.Config, log *slog.Logger) (*Service, error) {
		if c.PublicOrigin == "" {
			log.Info("no e-mails go to end-users about their posts: EARSHOT_PUBLIC_ORIGIN isn't set, so there is nowhere for links to lead")
		}
		return New(s, changes, Settings{PublicOrigin: c.PublicOrigin, PerSecond: c.MailPerSecond, EmailHashKey: c.EmailHashKey})
	},
))
