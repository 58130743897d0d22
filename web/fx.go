package web

import (
	"log/slog"
	"runtime"

	"go.uber.org/fx"

	"earshot/api"
	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/feedback"
	"earshot/internal/publicactions"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/widget"
	"earshot/web/pagecache"
)

// Module serves the pages beside the API.
var Module = fx.Module("web", fx.Invoke(
	func(a *api.API, keys *access.Service, f *feedback.Service, i *publicactions.Service, told *subscribers.Service, g *widget.Service, c config.Config, m *telemetry.Metrics, log *slog.Logger) error {
		p, err := New(UseCases{Access: keys, Feedback: f, PublicActions: i, Subscribers: told, Widget: g}, Options{
			PublicOrigin: c.PublicOrigin, Slots: pagecache.SlotsOf(runtime.GOMAXPROCS(0), c.DatabaseMaxConns), Network: a.Network, Meter: m.Meter(), Log: log,
		})
		if err != nil {
			return err
		}
		a.MountPages(p, Root+"*page", "/robots.txt")
		a.MountPages(p.Widget(), ScriptPath, FrameRoot+"*page", WidgetRoot+"*page")
		return nil
	},
))
