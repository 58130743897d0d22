package backfill

import "go.uber.org/fx"

// Module provides the Service.
var Module = fx.Module("backfill", fx.Provide(New))
