package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
)

func TestEverySettingStandsInTheOperatorsPageWithItsDefault(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	require.NoError(t, err)
	settings := reflect.TypeFor[config.Config]()
	for i := range settings.NumField() {
		tag := settings.Field(i).Tag
		row := ""
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "`"+tag.Get("env")+"`") {
				row = line
			}
		}
		require.NotEmpty(t, row, "%s has no row", tag.Get("env"))
		require.Contains(t, row, tag.Get("envDefault"), tag.Get("env"))
	}
}

func TestTheOperatorsPageHasTheRetrySchedule(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("`EARSHOT_WEBHOOK_RETRY_DELAYS` \\| (\\S+) \\|").FindStringSubmatch(string(page))
	require.Len(t, found, 2)
	told, err := config.Load(with("EARSHOT_WEBHOOK_RETRY_DELAYS=" + found[1]))
	require.NoError(t, err)
	untold, err := config.Load(needed())
	require.NoError(t, err)
	require.Equal(t, untold.WebhookRetryDelays, told.WebhookRetryDelays)
}
