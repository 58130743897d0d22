package contacts

import (
	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/postgres"
)

// Module provides the Service.
var Module = fx.Module("contacts", fx.Provide(
	func(s *postgres.DB, changes *change.Runner, c config.Config) *Service {
		return New(s, changes, Settings{CapFree: c.ContactCapFree, CapPro: c.ContactCapPro, EmailHashKey: c.EmailHashKey})
	},
))
