package send

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On Kubernetes a network policy blocks the same networks as the guard, so that neither is the only
// protection.
func TestTheChartsNetworkPolicyAndTheGuardBlockTheSameNetworks(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(filepath.Join("..", "..", "tools", "helm", "testdata", "defaults.yaml"))
	require.NoError(t, err)
	_, internet, found := strings.Cut(string(golden), "cidr: 0.0.0.0/0\n")
	require.True(t, found)
	internet, _, found = strings.Cut(internet, "---")
	require.True(t, found)
	var excepted []string
	for line := range strings.Lines(internet) {
		if network, found := strings.CutPrefix(strings.TrimSpace(line), "- "); found && strings.Contains(network, "/") {
			excepted = append(excepted, network)
		}
	}
	var want []string
	for _, network := range forbidden {
		want = append(want, network.String())
	}
	require.ElementsMatch(t, want, excepted)
}
