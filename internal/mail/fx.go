package mail

import (
	"log/slog"
	"net/mail"

	"go.uber.org/fx"

	"earshot/internal/config"
)

// Module provides the configured Mailer.
var Module = fx.Module("mail", fx.Provide(func(c config.Config, log *slog.Logger) *Mailer {
	return New(Options{SMTP: c.SMTP, From: mail.Address(c.MailFrom), Dir: c.MailDir, Log: log})
}))
