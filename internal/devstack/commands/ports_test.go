package commands

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/devstack"
)

const temporalDevFile = "../../../temporal-dev.yaml"

func TestPortsWithoutVariablesAreTheDefaults(t *testing.T) {
	t.Parallel()
	p, err := choosePorts(nil, temporalDevFile)
	require.NoError(t, err)
	require.Equal(t, ports{host: "127.0.0.1", api: 4280, postgres: 4281, metrics: 4282, temporal: 7233, webUI: 8233}, p)
}

func TestChosenPortsAreTaken(t *testing.T) {
	t.Parallel()
	p, err := choosePorts(config.Environ{"EARSHOT_PORT=0", "EARSHOT_POSTGRES_PORT=0", "EARSHOT_METRICS_PORT=0",
		"EARSHOT_TEMPORAL_PORT=0", "EARSHOT_TEMPORAL_UI_PORT=0"}, temporalDevFile)
	require.NoError(t, err)
	require.Equal(t, ports{host: "127.0.0.1"}, p)

	p, err = choosePorts(config.Environ{"EARSHOT_LISTEN=0.0.0.0:0", "EARSHOT_PORT="}, temporalDevFile)
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0", p.host)
	require.Zero(t, p.api)
	p.api = 4280
	require.Equal(t, "http://127.0.0.1:4280", (&up{ports: p}).baseURL())
}

func TestAChosenPortThatIsTakenIsAnErrorWithTheVariable(t *testing.T) {
	t.Parallel()
	taken := takenPort(t)
	for _, variable := range []string{"EARSHOT_PORT", "EARSHOT_POSTGRES_PORT", "EARSHOT_TEMPORAL_PORT", "EARSHOT_TEMPORAL_UI_PORT"} {
		_, err := choosePorts(config.Environ{fmt.Sprintf("%s=%d", variable, taken)}, temporalDevFile)
		require.ErrorContains(t, err, fmt.Sprintf("port %d (%s) is taken", taken, variable))
	}
	_, err := choosePorts(config.Environ{fmt.Sprintf("EARSHOT_LISTEN=127.0.0.1:%d", taken)}, temporalDevFile)
	require.ErrorContains(t, err, "(EARSHOT_LISTEN) is taken")
}

func TestADefaultGivesWayToAChoice(t *testing.T) {
	t.Parallel()
	chosen, err := devstack.FreePort()
	require.NoError(t, err)
	preferred := chosen
	require.NoError(t, settle([]*wish{
		{variable: apiPortVariable, number: &chosen, chosenBy: apiPortVariable},
		{variable: postgresPortVariable, number: &preferred},
	}))
	require.NotZero(t, chosen)
	require.Zero(t, preferred)
}

func TestTheSamePortChosenTwiceIsAnError(t *testing.T) {
	t.Parallel()
	free, err := devstack.FreePort()
	require.NoError(t, err)
	_, err = choosePorts(config.Environ{fmt.Sprintf("EARSHOT_PORT=%d", free), fmt.Sprintf("EARSHOT_POSTGRES_PORT=%d", free)}, temporalDevFile)
	require.ErrorContains(t, err, "EARSHOT_PORT and EARSHOT_POSTGRES_PORT are both")
}

func TestAPortThatIsNoneIsAnErrorWithTheVariable(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]string{
		"EARSHOT_PORT=http":             "EARSHOT_PORT=http: wants a port",
		"EARSHOT_TEMPORAL_PORT=65536":   "EARSHOT_TEMPORAL_PORT=65536: wants a port",
		"EARSHOT_POSTGRES_PORT=-1":      "EARSHOT_POSTGRES_PORT=-1: wants a port",
		"EARSHOT_LISTEN=4280":           "wants host:port",
		"EARSHOT_LISTEN=127.0.0.1:port": "EARSHOT_LISTEN=port: wants a port",
	} {
		_, err := choosePorts(config.Environ{pair}, temporalDevFile)
		require.ErrorContains(t, err, want)
	}
}

func TestTemporalsPortsComeFromTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal-dev.yaml")
	require.NoError(t, os.WriteFile(file, []byte("env: {dev: {port: 7333, ui-port: 8333}}\n"), 0o644))
	p, err := choosePorts(nil, file)
	require.NoError(t, err)
	require.Equal(t, 7333, p.temporal)
	require.Equal(t, 8333, p.webUI)

	require.NoError(t, os.WriteFile(file, []byte("env: {dev: {port: 7333}}\n"), 0o644))
	_, err = choosePorts(nil, file)
	require.ErrorContains(t, err, "env.dev.ui-port want a port")
}

// takenPort returns a port with a listener that stays open until the test ends.
func takenPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}
