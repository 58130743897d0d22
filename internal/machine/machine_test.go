package machine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/machine"
)

// group writes the files that describe the memory of a container.
func group(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestAContainerGoesByItsOwnMemoryLimit(t *testing.T) {
	t.Parallel()
	share, limited := machine.ContainerMemory(group(t, map[string]string{
		"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 500\ninactive_file 200\nactive_file 0\n",
	}))
	require.True(t, limited)
	require.InDelta(t, 0.5, share, 1e-9)
}

func TestAContainerWithoutALimitGoesByTheMachine(t *testing.T) {
	t.Parallel()
	_, limited := machine.ContainerMemory(group(t, map[string]string{"memory.max": "max\n", "memory.current": "700\n"}))
	require.False(t, limited)
	_, limited = machine.ContainerMemory(group(t, nil))
	require.False(t, limited)
}

func TestTheMachineTellsSharesOfItsMemoryAndProcessors(t *testing.T) {
	t.Parallel()
	m := &machine.Usage{}
	for _, ask := range []func() (float64, error){
		func() (float64, error) { return m.MemoryUsage(nil) }, func() (float64, error) { return m.CpuUsage(nil) },
	} {
		share, err := ask()
		require.NoError(t, err)
		require.GreaterOrEqual(t, share, 0.0)
		require.LessOrEqual(t, share, 1.0)
	}
}
