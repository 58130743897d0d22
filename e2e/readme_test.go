package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestEveryCommandOfTheREADMEWorks runs them in order, in a directory of their
// own. Two are run in another form: `make up` detached, because it stays in the
// foreground, and `make test` by CI, which this test is a part of.
func TestEveryCommandOfTheREADMEWorks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	ci, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	require.NoError(t, err)
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
	blocks := shellBlock.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		switch command := block[1]; command {
		case "make up\n":
			s.mustRun("make", "up", "DETACH=1")
		case "make test\n":
			require.Contains(t, string(ci), "make test")
		default:
			s.mustRun("bash", "-ec", command)
		}
	}
	// What the text names beside the blocks.
	require.Contains(t, s.mustRun("make"), "make quickstart")
	s.mustRun("make", "bench", "ARGS=-runs 1 -n 50 -period 100ms")
	s.mustRun("make", "down")
	s.mustRun("make", "reset", "YES=1")
}
