package access

import "go.uber.org/fx"

// Module provides the Service.
var Module = fx.Module("access", fx.Provide(New))
