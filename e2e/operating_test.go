package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// recipes are the commands of docs/operating.md by their headings. What stands under
// the first heading goes before each of them.
type recipes struct {
	*program
	stack    *stack
	receiver *testkit.Receiver
	prelude  string
	blocks   map[string][]string
	// vars are what the commands go by.
	vars []string
}

func readRecipes(t *testing.T) (prelude string, blocks map[string][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "operating.md"))
	require.NoError(t, err)
	_, text2, found := strings.Cut(string(text), "\n## When something is wrong\n")
	require.True(t, found)
	blocks = map[string][]string{}
	for i, section := range strings.Split(text2, "\n### ") {
		heading, _, _ := strings.Cut(section, "\n")
		for _, block := range shellBlock.FindAllStringSubmatch(section, -1) {
			if i == 0 {
				prelude += block[1]
				continue
			}
			blocks[heading] = append(blocks[heading], block[1])
		}
	}
	return prelude, blocks
}

// do runs the commands of the next n blocks of a recipe and returns what they said.
func (r *recipes) do(heading string, n int) string {
	r.t.Helper()
	blocks := r.blocks[heading]
	require.GreaterOrEqual(r.t, len(blocks), n, "%s", heading)
	r.blocks[heading] = blocks[n:]
	said := ""
	for _, block := range blocks[:n] {
		said += r.stack.mustRun("env", append(append([]string{}, r.vars...), "bash", "-euo", "pipefail", "-c", r.prelude+block)...)
	}
	return said
}

// state of a delivery.
func (r *recipes) state(delivery, webhook string) (status, failure string) {
	r.t.Helper()
	_, data := r.send(http.MethodGet, "/v1/webhooks/"+webhook+"/deliveries/"+delivery, nil)
	status, _ = data["status"].(string)
	failure, _ = data["lastError"].(string)
	return status, failure
}

func (r *recipes) awaitState(delivery, webhook, want string) {
	r.t.Helper()
	require.EventuallyWithT(r.t, func(c *assert.CollectT) {
		status, _ := r.state(delivery, webhook)
		require.Equal(c, want, status)
	}, waitLimit, lookEvery)
}

// TestEveryCommandOfTheRecipesDoesWhatTheRecipeSays plays the situations of
// docs/operating.md in their order.
func TestEveryCommandOfTheRecipesDoesWhatTheRecipeSays(t *testing.T) {
	tier.Slow(t, "runs every command of the recipes")
	tier.Needs(t, "curl", "jq")
	t.Parallel()
	r := newRecipes(t)
	webhook := r.first("/v1/webhooks")["id"].(string)
	log := "/v1/webhooks/" + webhook + "/deliveries"
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	r.post()
	require.Eventually(t, func() bool { return r.first(log)["attemptCount"] == 1.0 }, waitLimit, lookEvery)
	delivery := r.first(log)["id"].(string)
	r.vars = append(r.vars, "WEBHOOK="+webhook, "DELIVERY="+delivery)

	one := "One delivery failed"
	require.Contains(t, r.do(one, 1), `"status":"pending"`)
	require.Contains(t, r.do(one, 1), "attempt:3", "the second was made")
	r.do(one, 1)
	status, failure := r.state(delivery, webhook)
	require.Equal(t, []string{"failed", "given_up"}, []string{status, failure})
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
	r.do(one, 1)
	r.awaitState(delivery, webhook, "succeeded")
	require.Regexp(t, `dlv_\w{26}`, r.do(one, 1))
	r.receiver.Await(t, 5) // two that failed, the reset one, two replays

	r.failed(log, 3)
	night := "A customer's endpoint was down all night"
	require.Contains(t, r.do(night, 1), `"eventType":"webhook.test"`)
	require.Eventually(t, func() bool {
		return r.first("/v1/webhooks/" + webhook + "/recoveries")["status"] == "completed"
	}, waitLimit, lookEvery)
	require.Contains(t, r.do(night, 1), `"replayed":3`)

	everything := "Replay everything since 3 am"
	require.Contains(t, r.do(everything, 1), `"status":"running"`)
	require.Contains(t, r.do(everything, 1), "recover_webhook")
	require.Contains(t, r.do(everything, 1), `"replayOf":"`+delivery)

	entry := r.must(http.MethodPost, "/v1/boards/"+r.board+"/changelog",
		map[string]any{"title": "Dark at last", "publishedAt": "2041-01-01T09:00:00Z"})
	r.vars = append(r.vars, "ENTRY="+entry)
	moved := "A publication must be moved"
	require.Contains(t, r.do(moved, 1), "2040-01-01T09:00:00Z")
	require.Contains(t, r.do(moved, 1), `"state":"draft"`)

	r.disabled(t, webhook)
	why := "Why is this webhook disabled?"
	require.Contains(t, r.do(why, 1), `"disabledReason":"failures"`)
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
	require.Contains(t, r.do(why, 1), `"enabled":true`)

	replaced := "A sealing key must be replaced"
	r.do(replaced, 1)
	r.do(replaced, 1)
	require.Regexp(t, `1 webhooks were sealed anew with k\d{14}, 0 are left`, r.do(replaced, 1))
	require.Regexp(t, `"keyId": ?"k\d{14}",\s*"readable": ?true,\s*"submissions": ?0,\s*"webhooks": ?1,\s*"widgetSecrets": ?0\s*}\s*\]`, r.do(replaced, 1))
	r.do(replaced, 1)
	r.url = r.stack.sourced("EARSHOT_BASE_URL") // another port
	before := len(r.receiver.All())
	r.post()
	require.NoError(t, r.receiver.Await(t, before+1)[before].Invalid, "signed with the secret that it had")
	for heading, left := range r.blocks {
		require.Empty(t, left, "%s has commands that weren't run", heading)
	}
}

func newRecipes(t *testing.T) *recipes {
	t.Helper()
	binary, err := devstack.TemporalBinary(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	// Failed attempts disable, because deliveries that wait an hour don't fail.
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1h,1h,1h,1h", "EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts",
		"PATH="+filepath.Dir(binary)+":"+filepath.Dir(earshot)+":"+os.Getenv("PATH"))
	s.mustRun(earshot, "up", "--detach")
	r := &recipes{
		program: &program{t: t, url: s.sourced("EARSHOT_BASE_URL"), key: s.sourced("EARSHOT_API_KEY"), client: http.DefaultClient},
		stack:   s, receiver: testkit.NewReceiver(t),
	}
	r.prelude, r.blocks = readRecipes(t)
	r.subscribe(r.receiver)
	return r
}

// failed makes deliveries that failed for good, by giving them up.
func (r *recipes) failed(log string, n int) {
	r.t.Helper()
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	for range n {
		r.post()
		var id string
		require.Eventually(r.t, func() bool {
			d := r.first(log)
			id, _ = d["id"].(string)
			return d["status"] == "pending" && d["attemptCount"] == 1.0
		}, waitLimit, lookEvery)
		r.stack.mustRun("env", "TEMPORAL_ADDRESS="+r.stack.sourced("TEMPORAL_ADDRESS"),
			"temporal", "workflow", "update", "execute", "--workflow-id", id, "--name", "give_up")
	}
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
}

// disabled has fifty attempts fail in a row.
func (r *recipes) disabled(t *testing.T, webhook string) {
	t.Helper()
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { r.post() })
	}
	all.Wait()
	require.Eventually(t, func() bool {
		return r.first("/v1/webhooks")["disabledReason"] == "failures"
	}, waitLimit, lookEvery, "webhook %s", webhook)
}
