package privacy

import (
	"go.uber.org/fx"
)

// Module provides the Service.
var Module = fx.Module("privacy", fx.Provide(New))
