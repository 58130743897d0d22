package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

func TestAKillAmidAThrottledBacklogLosesNothingOfIt(t *testing.T) {
	tier.Slow(t, "kills the process amid a throttled backlog")
	t.Parallel()
	r := testkit.NewReceiver(t)
	p := newProgram(t, temporalSettings(t)...)
	running := p.serve()
	p.subscribe(r)
	hook := p.first("/v1/webhooks")["id"]
	status, _ := p.send(http.MethodPatch, fmt.Sprint("/v1/webhooks/", hook), map[string]any{"maxPerSecond": 5})
	require.Equal(t, http.StatusOK, status)
	var posts []string
	for range 40 {
		posts = append(posts, p.post())
	}
	require.NotContains(t, posts, "")
	r.Await(t, 12) // Some arrive immediately and some at their turn. The rest is still to come.
	require.Less(t, len(r.All()), len(posts))
	running.kill()
	p.serve()
	awaitPosts(t, r, posts)
}
