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

// shown matches the lines of output in the README that begin the same on each run: a finished step,
// and a part of the quickstart's story.
var shown = regexp.MustCompile(`(?m)^(  ✓ [A-Z][A-Za-z ]+?  |\d\. [A-Z].*)`)

// TestEveryCommandOfTheREADMEWorks runs the commands in order, in a temporary directory. It runs
// `make up` detached, because that stays in the foreground. CI runs `make test`, which includes
// this test.
func TestEveryCommandOfTheREADMEWorks(t *testing.T) {
	tier.Slow(t, "runs every command of the README")
	tier.Needs(t, "curl", "jq")
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	ci, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	require.NoError(t, err)
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
	script := filepath.Join(repository, "examples", "quickstart.sh")
	out, code := s.run(script)
	require.Equal(t, 1, code)
	require.Contains(t, out, "start the stack with make up")
	blocks := shellBlock.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)
	var said strings.Builder
	quickstarts := 0
	for _, block := range blocks {
		switch command := block[1]; command {
		case "make up INSTALL=1\n":
			said.WriteString(s.mustRun("make", "up", "INSTALL=1", "DETACH=1"))
		case "make test\n":
			require.Contains(t, string(ci), "make test")
		case "make quickstart\n":
			quickstarts++
			said.WriteString(s.quickstart("make", "quickstart"))
			s.quickstart(script) // each run has its own board, contact and webhook
		default:
			said.WriteString(s.mustRun("bash", "-ec", command))
		}
	}
	require.Equal(t, 1, quickstarts)
	for _, line := range shown.FindAllStringSubmatch(string(readme), -1) {
		require.Contains(t, said.String(), line[1], "the README shows what isn't said")
	}
	// Commands in the text outside of the blocks.
	require.Contains(t, s.mustRun("make"), "make quickstart")
	s.mustRun("make", "bench", "ARGS=-runs 1 -n 50 -period 100ms -scale 0.01")
	s.mustRun("make", "down")
	s.mustRun("make", "reset", "YES=1")
}

// quickstart runs a command that plays the quickstart, and returns its output. It checks that all
// deliveries arrive, the first one at its second attempt, and that the webhook is removed.
func (s *stack) quickstart(path string, args ...string) string {
	s.t.Helper()
	before := s.webhooks()
	out := s.mustRun(path, args...)
	for _, event := range []string{
		"contact.created", "contact.updated", "post.created", "post.status_changed", "comment.created", "vote.created",
	} {
		require.Regexp(s.t, regexp.QuoteMeta(event)+` +dlv_\w+ +attempt \d  signature valid  answered 200`, out)
		require.Regexp(s.t, regexp.QuoteMeta(event)+` +dlv_\w+  succeeded after [12] attempt`, out)
	}
	failed := regexp.MustCompile(`(dlv_\w+) +attempt 1  signature valid  answered 500`).FindAllStringSubmatch(out, -1)
	require.Len(s.t, failed, 1)
	require.Regexp(s.t, failed[0][1]+` +attempt 2  signature valid  answered 200`, out)
	require.Regexp(s.t, failed[0][1]+`  succeeded after 2 attempt`, out)
	require.NotContains(s.t, out, "INVALID")
	require.Regexp(s.t, s.sourced("TEMPORAL_UI_URL")+`/namespaces/default/workflows\?query=WebhookID%20%3D%20%27whk_\w+%27`, out)
	require.Equal(s.t, before, s.webhooks(), "the script removes its webhook")
	return out
}

func (s *stack) webhooks() (list struct{ Data []struct{ ID string } }) {
	s.t.Helper()
	s.get("/v1/webhooks", &list)
	return list
}
