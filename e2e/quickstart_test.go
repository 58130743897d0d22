package e2e

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

func TestTheQuickstartTellsItsWholeStory(t *testing.T) {
	tier.Slow(t, "plays the quickstart")
	tier.Needs(t, "curl", "jq")
	t.Parallel()
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
	script := filepath.Join(repository, "examples", "quickstart.sh")

	out, code := s.run(script)
	require.Equal(t, 1, code)
	require.Contains(t, out, "start the stack with make up")

	s.mustRun(earshot, "up", "--detach")
	for range 2 { // as often as you like
		out = s.mustRun(script)
		for _, event := range []string{
			"contact.created", "contact.updated", "post.created", "post.status_changed", "comment.created", "vote.created",
		} {
			require.Regexp(t, regexp.QuoteMeta(event)+` +dlv_\w+ +attempt \d  signature valid  answered 200`, out)
			require.Regexp(t, regexp.QuoteMeta(event)+` +dlv_\w+  succeeded after [12] attempt`, out)
		}
		failed := regexp.MustCompile(`(dlv_\w+) +attempt 1  signature valid  answered 500`).FindAllStringSubmatch(out, -1)
		require.Len(t, failed, 1)
		require.Regexp(t, failed[0][1]+` +attempt 2  signature valid  answered 200`, out)
		require.Regexp(t, failed[0][1]+`  succeeded after 2 attempt`, out)
		require.NotContains(t, out, "INVALID")
		require.Regexp(t, s.sourced("TEMPORAL_UI_URL")+`/namespaces/default/workflows\?query=WebhookID%20%3D%20%27whk_\w+%27`, out)
	}

	var webhooks struct{ Data []any }
	s.get("/v1/webhooks", &webhooks)
	require.Empty(t, webhooks.Data, "the script removes its webhook")
}
