package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"earshot/internal/config"
	"earshot/internal/postgres"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
)

func TestTheStoreOfTheServiceMakesStatisticsByItself(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	g := newGrowing(t, url, "mail_suppressions")
	service := fxtest.New(t, fx.NopLogger, telemetry.Module, postgres.Module, fx.Supply(config.Config{DatabaseURL: url}, testkit.Log(t)),
		fx.Invoke(func(*postgres.DB) {}))
	service.RequireStart()
	t.Cleanup(func() { service.RequireStop() })
	g.exec(addSuppressions, 1000)
	require.Eventually(t, func() bool { return g.analyzed() != nil }, testkit.Wait, testkit.Tick)
}
