// Package app lists the parts of the service below its edges: the database, the features, and the
// client that starts workflows. The program and the tests add the edges: api, web, mcp and worker.
package app

import (
	"context"

	"go.uber.org/fx"

	"earshot/dispatch"
	"earshot/internal/access"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/delivery"
	"earshot/internal/feedback"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
	"earshot/internal/privacy"
	"earshot/internal/publicactions"
	"earshot/internal/ratelimit"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

// Module provides the parts. It needs config.Config, Temporal's client.Options and a *slog.Logger.
var Module = fx.Module("app",
	telemetry.Module, postgres.Module, fx.Invoke(prepareDatabase, delivery.Measure), ratelimit.Module, change.Module, access.Module, contacts.Module, webhooks.Module, feedback.Module,
	publicactions.Module, privacy.Module, backfill.Module, subscribers.Module, widget.Module, dispatch.Module,
)

// prepareDatabase refuses to start on a schema that is behind. No part uses the database before.
func prepareDatabase(lc fx.Lifecycle, s *postgres.DB) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		if err := migrate.CheckSchema(ctx, s); err != nil {
			return err
		}
		return migrate.NumberChangesAnew(ctx, s)
	}))
}
