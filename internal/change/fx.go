package change

import "go.uber.org/fx"

// Module provides the Runner. It needs a Dispatcher.
var Module = fx.Module("change", fx.Provide(NewRunner))
