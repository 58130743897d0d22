package mcp

import (
	"log/slog"

	"go.uber.org/fx"

	"earshot/api"
)

// Module serves the tools beside the API.
var Module = fx.Module("mcp", fx.Invoke(func(a *api.API, log *slog.Logger) error { return Mount(a, log) }))
