package web

import (
	"log/slog"
	"runtime"

	"go.uber.org/fx"

	"earshot/api"
	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/feedback"
	"earshot/internal/interactions"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/widget"
)

// slotsOf is how many pages are made at once: as many as half of the processors, at most a quarter
// of the connections to the database, so that readers leave the other half and most of the
// connections to the API.
func slotsOf(processors int, connections int32) int {
	return max(1, min(processors/2, int(connections/4)))
}

// Module serves the pages beside the API.
var Module = fx.Module("web", fx.Invoke(
	func(a *api.API, keys *access.Service, f *feedback.Service, i *interactions.Service, told *subscribers.Service, g *widget.Service, c config.Config, m *telemetry.Metrics, log *slog.Logger) error {
		p, err := New(UseCases{Access: keys, Feedback: f, Interactions: i, Subscribers: told, Widget: g}, Options{
			PublicOrigin: c.PublicOrigin, Slots: slotsOf(runtime.GOMAXPROCS(0), c.DatabaseMaxConns), Network: a.Network, Meter: m.Meter(), Log: log,
		})
		if err != nil {
			return err
		}
		a.MountPages(p, Root+"*page", "/robots.txt")
		a.MountPages(p.Widget(), ScriptPath, FrameRoot+"*page", WidgetRoot+"*page")
		return nil
	},
))
