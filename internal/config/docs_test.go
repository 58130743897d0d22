package config_test

import (
	"os"
	"path/filepath"
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
	for _, s := range config.Settings() {
		row := ""
		for line := range strings.Lines(string(page)) {
			// Only the first cell counts, because other tables name settings in their second cell.
			if cells := strings.Split(line, "|"); len(cells) > 1 && strings.Contains(cells[1], "`"+s.Name+"`") {
				row = line
			}
		}
		require.NotEmpty(t, row, "%s has no row", s.Name)
		require.Contains(t, row, s.Default, s.Name)
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
