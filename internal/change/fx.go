package change

import (
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/config"
)

// Module provides the Runner. It needs a Dispatcher.
var Module = fx.Module("change", fx.Provide(NewRunner, func(c config.Config, log *slog.Logger) Settings {
	return Settings{SubscribedOnly: !c.EventFeed, SubscriberMails: c.PublicOrigin != "", Log: log}
}))
