package e2e

import (
	"bytes"
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
	has := func(text string) bool { return bytes.Contains(program, []byte(text)) }
	require.False(t, has("internal/failpoint"), "code of the package")
	require.False(t, has(failpoint.Variable))
	for _, p := range failpoint.Points {
		require.False(t, has(string(p)), p)
	}
}
