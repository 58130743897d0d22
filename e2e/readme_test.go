package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// shown are the lines of output in the README whose beginning is the same each
// time: a step that is done, and a part of the quickstart's story.
var shown = regexp.MustCompile(`(?m)^(  ✓ [A-Z][A-Za-z ]+?  |\d\. [A-Z].*)`)

// TestEveryCommandOfTheREADMEWorks runs them in order, in a directory of their
// own. Two are run in another form: `make up` detached, because it stays in the
// foreground, and `make test` by CI, which this test is a part of.
func TestEveryCommandOfTheREADMEWorks(t *testing.T) {
	tier.Slow(t, "runs every command of the README")
	tier.Needs(t, "curl", "jq")
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	ci, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	require.NoError(t, err)
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
	blocks := shellBlock.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)
	var said strings.Builder
	for _, block := range blocks {
		switch command := block[1]; command {
		case "make up INSTALL=1\n":
			said.WriteString(s.mustRun("make", "up", "INSTALL=1", "DETACH=1"))
		case "make test\n":
			require.Contains(t, string(ci), "make test")
		default:
			said.WriteString(s.mustRun("bash", "-ec", command))
		}
	}
	for _, line := range shown.FindAllStringSubmatch(string(readme), -1) {
		require.Contains(t, said.String(), line[1], "the README shows what isn't said")
	}
	// What the text names beside the blocks.
	require.Contains(t, s.mustRun("make"), "make quickstart")
	s.mustRun("make", "bench", "ARGS=-runs 1 -n 50 -period 100ms -scale 0.01")
	s.mustRun("make", "down")
	s.mustRun("make", "reset", "YES=1")
}
