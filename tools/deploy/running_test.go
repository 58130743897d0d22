package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/stretchr/testify/require"
)

// The second file of the page is merged over compose.yaml.
func TestThePageShowsHowToUsePostgresAndTemporalElsewhere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "running.md"))
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	second := filepath.Join(t.TempDir(), "elsewhere.yaml")
	require.NoError(t, os.WriteFile(second, shown[1], 0o600))
	o, err := cli.NewProjectOptions([]string{filepath.Join(deployment, "compose.yaml"), second})
	require.NoError(t, err)
	p, err := o.LoadProject(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"api", "worker", "migrate", "temporal-setup"}, p.ServiceNames())
	for name, s := range p.Services {
		require.Len(t, s.Volumes, 1, name)
		require.Equal(t, "/tls", s.Volumes[0].Target)
		require.Contains(t, s.Networks, "outside", name)
	}
	require.Len(t, p.Services["api"].DependsOn, 2, "migrate and temporal-setup")
	require.Empty(t, p.Services["migrate"].DependsOn)
}

// The page must explain every variable that Compose itself reads.
func TestThePageNamesEveryVariableOfCompose(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "running.md"))
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join(deployment, "compose.yaml"))
	require.NoError(t, err)
	found := regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllSubmatch(file, -1)
	require.NotEmpty(t, found)
	for _, match := range found {
		require.Contains(t, string(page), "`"+string(match[1])+"`")
	}
}
