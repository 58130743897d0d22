package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// recipes are the commands of docs/operating.md. The block "variables" goes before each
// of them.
type recipes struct {
	*program
	stack    *stack
	receiver *testkit.Receiver
	blocks   *blocks
	// vars are the shell variables of the commands.
	vars []string
}

// do runs the commands of a block and returns their output.
func (r *recipes) do(block string) string {
	r.t.Helper()
	commands := r.blocks.named("variables") + r.blocks.named(block)
	return r.stack.mustRun("env", append(append([]string{}, r.vars...), "bash", "-euo", "pipefail", "-c", commands)...)
}

// state returns the status and the error of a delivery.
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
	}, waitLimit, pollInterval)
}

// TestEveryCommandOfTheOperatingGuideWorksAsDescribed plays the situations of docs/operating.md in
// order.
func TestEveryCommandOfTheOperatingGuideWorksAsDescribed(t *testing.T) {
	tier.Slow(t, "runs every command of the recipes")
	tier.Needs(t, "curl", "jq")
	t.Parallel()
	r := newRecipes(t)
	webhook := r.first("/v1/webhooks")["id"].(string)
	log := "/v1/webhooks/" + webhook + "/deliveries"
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusInternalServerError })
	r.post()
	require.Eventually(t, func() bool { return r.first(log)["attemptCount"] == 1.0 }, waitLimit, pollInterval)
	delivery := r.first(log)["id"].(string)
	r.vars = append(r.vars, "WEBHOOK="+webhook, "DELIVERY="+delivery)

	require.Contains(t, r.do("find-delivery"), `"status":"pending"`)
	require.Contains(t, r.do("retry-now"), "attempt:3", "the second was made")
	r.do("give-up")
	status, failure := r.state(delivery, webhook)
	require.Equal(t, []string{"failed", "given_up"}, []string{status, failure})
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
	r.do("reset-delivery")
	r.awaitState(delivery, webhook, "succeeded")
	require.Regexp(t, `dlv_\w{26}`, r.do("replay-delivery"))
	r.receiver.Await(t, 5) // Two failed, one reset and two replays.

	r.failed(log, 3)
	require.Contains(t, r.do("recover"), `"eventType":"webhook.test"`)
	require.Eventually(t, func() bool {
		return r.first("/v1/webhooks/" + webhook + "/recoveries")["status"] == "completed"
	}, waitLimit, pollInterval)
	require.Contains(t, r.do("find-recovery"), `"replayed":3`)

	require.Contains(t, r.do("recover-all"), `"status":"running"`)
	require.Contains(t, r.do("find-recoveries"), "recover_webhook")
	require.Contains(t, r.do("replay-succeeded"), `"replayOf":"`+delivery)

	entry := r.must(http.MethodPost, "/v1/boards/"+r.board+"/changelog",
		map[string]any{"title": "Dark at last", "publishedAt": "2041-01-01T09:00:00Z"})
	r.vars = append(r.vars, "ENTRY="+entry)
	require.Contains(t, r.do("move-publication"), "2040-01-01T09:00:00Z")
	require.Contains(t, r.do("unpublish"), `"state":"draft"`)

	r.disabled(t, webhook)
	require.Contains(t, r.do("why-disabled"), `"disabledReason":"failures"`)
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
	require.Contains(t, r.do("enable-webhook"), `"enabled":true`)

	r.do("add-key")
	r.do("use-key")
	require.Regexp(t, `1 webhooks were sealed anew with k\d{14}, 0 are left`, r.do("seal-anew"))
	require.Regexp(t, `"keyId": ?"k\d{14}",\s*"readable": ?true,\s*"submissions": ?0,\s*"webhooks": ?1,\s*"widgetSecrets": ?0\s*}\s*\]`, r.do("list-keys"))
	r.do("remove-key")
	r.url = r.stack.sourced("EARSHOT_BASE_URL") // The port is different now.
	before := len(r.receiver.All())
	r.post()
	require.NoError(t, r.receiver.Await(t, before+1)[before].Invalid, "signed with the secret that it had")
	// TestAnOperatorMakesContactsOfPeopleWithOldActivity runs the backfill. The first three need
	// other services: a mail provider, a second Postgres and a port for metrics.
	r.blocks.requireAllUsed("bounces", "standby", "profiles", "backfill", "backfill-status")
}

func newRecipes(t *testing.T) *recipes {
	t.Helper()
	// TemporalBinary links the recipes' temporal into .earshot/bin, as make up does.
	_, err := devstack.TemporalBinary(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	// Failed attempts count, because a delivery that waits for an hour doesn't fail in time.
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1h,1h,1h,1h", "EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts",
		"PATH="+filepath.Join(repository, ".earshot", "bin")+":"+filepath.Dir(earshot())+":"+os.Getenv("PATH"))
	s.mustRun(earshot(), "up", "--detach")
	r := &recipes{
		program: &program{t: t, url: s.sourced("EARSHOT_BASE_URL"), key: s.sourced("EARSHOT_API_KEY"), client: http.DefaultClient},
		stack:   s, receiver: testkit.NewReceiver(t),
	}
	r.blocks = readBlocks(t, "operating.md")
	r.subscribe(r.receiver)
	return r
}

// failed makes deliveries that failed permanently, by giving them up.
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
		}, waitLimit, pollInterval)
		r.stack.mustRun("env", "TEMPORAL_ADDRESS="+r.stack.sourced("TEMPORAL_ADDRESS"),
			"temporal", "workflow", "update", "execute", "--workflow-id", id, "--name", "give_up")
	}
	r.receiver.Answer(func(int, testkit.Received) int { return http.StatusOK })
}

// disabled makes fifty attempts fail in a row.
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
	}, waitLimit, pollInterval, "webhook %s", webhook)
}
