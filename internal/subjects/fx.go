package subjects

import "go.uber.org/fx"

// Module provides the Service.
var Module = fx.Module("subjects", fx.Provide(New))
