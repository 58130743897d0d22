package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/internal/config"
)

func TestEveryRoleIsWiredCompletely(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]role{
		"API and worker": roleAPI | roleWorker, "API only": roleAPI, "worker only": roleWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := slog.New(slog.DiscardHandler)
			require.NoError(t, fx.ValidateApp(application(config.Config{}, client.Options{}, log, r, func(error) {})))
		})
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRootCommand().Commands() {
		require.NotEmpty(t, cmd.Short, cmd.Name())
		for _, sub := range cmd.Commands() {
			require.NotEmpty(t, sub.Short, sub.CommandPath())
		}
	}
}
