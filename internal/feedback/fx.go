package feedback

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/store"
)

// Module provides the Service.
var Module = fx.Module("feedback", fx.Provide(
	func(lc fx.Lifecycle, s *store.Store, changes *change.Runner, people *contacts.Service, c config.Config, log *slog.Logger) *Service {
		f := New(s, changes, people, Settings{CommentEditWindow: c.CommentEditWindow, EmailHashKey: c.EmailHashKey}, log)
		lc.Append(hashAuthors(f, log))
		return f
	},
))

// hashAuthors runs HashAuthors in the background, because it may have to update a million rows and
// no request depends on it. After an error, the next run of the retention continues.
func hashAuthors(f *Service, log *slog.Logger) fx.Hook {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	return fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				defer close(done)
				if err := f.HashAuthors(ctx); err != nil && ctx.Err() == nil {
					log.WarnContext(ctx, "some contacts' counts stay too low until the next retention", "error", err)
				}
			}()
			return nil
		},
		OnStop: func(context.Context) error { stop(); <-done; return nil },
	}
}
