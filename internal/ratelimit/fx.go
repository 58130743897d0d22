package ratelimit

import (
	"go.uber.org/fx"

	"earshot/internal/config"
	"earshot/internal/postgres"
)

// Module provides the limits of API keys.
var Module = fx.Module("ratelimit", fx.Provide(func(s *postgres.DB, c config.Config) *Keys { return NewKeys(s, c.RateLimit) }))
