package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/failpoint"
)

// The harness in e2e/faults shows that a program with the tag has the failpoints.
func TestAnOrdinaryBuildHasNothingOfTheFailpoints(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(earshot())
	require.NoError(t, err)
	require.NotContains(t, string(program), "internal/failpoint", "code of the package")
	require.NotContains(t, string(program), failpoint.Variable)
	for _, p := range failpoint.Points {
		require.NotContains(t, string(program), string(p))
	}
}
