package feedback

import (
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
)

// Module provides the Service.
var Module = fx.Module("feedback", fx.Provide(
	func(s *postgres.DB, changes *change.Runner, people *contacts.Service, c config.Config, log *slog.Logger) *Service {
		return New(s, changes, people, Settings{CommentEditWindow: c.CommentEditWindow, EmailHashKey: c.EmailHashKey}, log)
	},
))
