package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestProcessesOfAStackForProductionHaveEverySettingThatComposeGivesAValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "deploy", "compose.yaml"))
	require.NoError(t, err)
	var compose struct {
		Settings map[string]string `yaml:"x-settings"`
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	require.NotEmpty(t, compose.Settings)
	s := &stack{dir: t.TempDir(), production: true}
	env, err := s.likeCompose("api-1", append(s.settings(),
		"DATABASE_URL=postgres://one/earshot", "TEMPORAL_ADDRESS=127.0.0.1:1", "EARSHOT_LISTEN=127.0.0.1:2"))
	require.NoError(t, err)
	given := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	for name, value := range compose.Settings {
		if value != "" {
			require.Contains(t, given, name)
		}
	}
	require.NotContains(t, given, "DATABASE_URL", "a secret in the clear")
	written, err := os.ReadFile(given["DATABASE_URL_FILE"])
	require.NoError(t, err)
	require.Equal(t, "postgres://one/earshot\n", string(written))
}
