package contacts

import (
	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/store"
)

// Module provides the Service.
var Module = fx.Module("contacts", fx.Provide(
	func(s *store.Store, changes *change.Runner, c config.Config) *Service {
		return New(s, changes, Settings{CapFree: c.ContactCapFree, CapPro: c.ContactCapPro, EmailHashKey: c.EmailHashKey})
	},
))
