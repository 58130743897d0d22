package publicactions

import (
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/seal"
	"earshot/internal/subscribers"
)

// Module provides the Service.
var Module = fx.Module("publicactions", fx.Provide(
	func(s *postgres.DB, changes *change.Runner, f *feedback.Service, mailed *subscribers.Service, box *seal.Box, c config.Config, log *slog.Logger) *Service {
		return New(s, changes, f, mailed, box, c.EmailHashKey, c.DisposableDomains, log)
	},
))
