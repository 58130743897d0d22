package widget

import "go.uber.org/fx"

// Module provides the Service.
var Module = fx.Module("widget", fx.Provide(New))
