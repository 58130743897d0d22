package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// calls returns the settings with which a command calls the service.
func (p *program) calls() []string {
	return []string{"EARSHOT_BASE_URL=" + p.url, "EARSHOT_API_KEY=" + p.key}
}

// listen starts `earshot listen` on a free port and waits until it accepts deliveries.
func (p *program) listen(args ...string) *process {
	p.t.Helper()
	s := p.start(append([]string{"listen", "--port", "0"}, args...), p.calls()...)
	s.says(`Listening on `)
	return s
}

// says waits until the process has printed a match of the pattern, and returns the first group.
func (s *process) says(pattern string) (found string) {
	s.t.Helper()
	expression := regexp.MustCompile(pattern)
	require.Eventually(s.t, func() bool {
		groups := expression.FindStringSubmatch(s.log.String())
		if groups != nil {
			found = groups[len(groups)-1]
		}
		return groups != nil
	}, waitLimit, pollInterval, "it never said %s", pattern)
	return found
}

// made is a resource of `earshot trigger`.
type made struct{ Kind, ID string }

// trigger runs `earshot trigger` and returns the new resources.
func (p *program) trigger(name string) []made {
	p.t.Helper()
	kept := p.env
	p.env = append(slices.Clone(kept), p.calls()...)
	defer func() { p.env = kept }()
	var said struct {
		Event string
		Made  []made
	}
	p.json(&said, "trigger", name, "--json")
	require.Equal(p.t, name, said.Event)
	require.NotEmpty(p.t, said.Made)
	return said.Made
}

func TestListenForwardsDeliveriesUnchangedAndTheTargetsAnswerDecides(t *testing.T) {
	t.Parallel()
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")...)
	p.serve()
	target := testkit.NewReceiver(t)
	target.Answer(func(n int, _ testkit.Received) int {
		if n == 1 {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	l := p.listen("--forward", target.URL, "--events", "post.created,comment.created", "--json")
	target.Verify(l.says(`(whsec_\w+)`))
	webhook := l.says(`Registered (whk_\w+) at \S+ for post\.created, comment\.created; it is removed at the end`)

	p.trigger("comment.created")
	for _, got := range target.Await(t, 3) {
		require.NoError(t, got.Invalid, "body and signature come as the service sent them")
		require.NotEmpty(t, got.Header.Get("Webhook-Signature"))
		require.Equal(t, "Service-Webhooks/1.0", got.Header.Get("User-Agent"))
		require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	}
	require.Eventually(t, func() bool { return p.first("/v1/webhooks/"+webhook+"/deliveries?status=pending") == nil }, waitLimit, pollInterval)
	var shown []map[string]any
	for line := range strings.Lines(l.log.String()) {
		var d map[string]any
		if json.Unmarshal([]byte(line), &d) == nil {
			shown = append(shown, d)
		}
	}
	require.Len(t, shown, 3, "a line for each")
	statuses := map[any]int{}
	for _, d := range shown {
		require.Equal(t, "valid", d["signature"])
		statuses[d["status"]]++
	}
	require.Equal(t, map[any]int{503.0: 1, 204.0: 2}, statuses)

	require.Zero(t, l.signal(syscall.SIGTERM))
	require.Nil(t, p.first("/v1/webhooks"), "the webhook is gone with the command")
}

func TestListenSaysThatATargetIsDownAndTheServiceHearsABadGateway(t *testing.T) {
	tier.Slow(t, "runs a service and waits for a target")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	secretive := strings.Replace(gone.URL, "://", "://ines:pass-word@", 1) + "/hook?token=to-ken"
	l := p.listen("--forward", secretive)
	webhook := l.says(`Registered (whk_\w+)`)
	p.trigger("contact.created")
	l.says(`contact\.created +dlv_\w+ +attempt 1  signature valid  answered 502 \(` + regexp.QuoteMeta(gone.URL) + ` can't be reached: .*connection refused\)`)
	require.Eventually(t, func() bool {
		d := p.first("/v1/webhooks/" + webhook + "/deliveries")
		return d != nil && d["lastResponseStatus"] == 502.0
	}, waitLimit, pollInterval)
	_, logged := p.send(http.MethodGet, "/v1/webhooks/"+webhook+"/deliveries/"+fmt.Sprint(p.first("/v1/webhooks/" + webhook + "/deliveries")["id"]), nil)
	require.Contains(t, fmt.Sprint(logged), gone.URL+" can't be reached")
	for _, secret := range []string{"ines", "pass-word", "to-ken"} {
		require.NotContains(t, fmt.Sprint(logged), secret, "the service's log has nothing of the target but its address")
		require.NotContains(t, l.log.String(), secret)
	}
	require.Zero(t, l.signal(os.Interrupt))
	require.Nil(t, p.first("/v1/webhooks"))
}

func TestTheNextListenRemovesOnlyTheWebhookOfTheKilledRun(t *testing.T) {
	tier.Slow(t, "runs a service and kills a command")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	elsewhere, dir := t.TempDir(), filepath.Join(t.TempDir(), "made-when-needed")
	p.env = append(p.env, "EARSHOT_DIR="+elsewhere)
	another := p.listen("--events", "vote.created")
	others := another.says(`Registered (whk_\w+)`)
	another.kill()

	p.env = append(p.env, "EARSHOT_DIR="+dir)
	running := p.listen("--events", "vote.created")
	killed := p.listen("--events", "vote.created")
	left := killed.says(`Registered (whk_\w+)`)
	port := killed.says(`Listening on http://127\.0\.0\.1:(\d+)/`)
	killed.kill()
	id, err := os.ReadFile(filepath.Join(dir, "listen-id"))
	require.NoError(t, err)
	kept := p.must(http.MethodPost, "/v1/webhooks", map[string]any{
		"url": "https://example.com/earshot-listen/" + string(id) + "/1", "events": []string{"post.created"},
	})

	next := p.listen("--events", "vote.created", "--port", port)
	require.Equal(t, left, next.says(`Removed (whk_\w+), which an earlier run left behind`))
	for _, id := range []string{others, kept, running.says(`Registered (whk_\w+)`), next.says(`Registered (whk_\w+)`)} {
		status, _ := p.send(http.MethodGet, "/v1/webhooks/"+id, nil)
		require.Equal(t, http.StatusOK, status, id)
	}
	status, _ := p.send(http.MethodGet, "/v1/webhooks/"+left, nil)
	require.Equal(t, http.StatusNotFound, status)
}

func TestListensThatRemoveTheSameWebhookAtOnceBothGoOn(t *testing.T) {
	tier.Slow(t, "runs a service and several commands")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	p.env = append(p.env, "EARSHOT_DIR="+t.TempDir())
	killed := p.listen("--events", "vote.created")
	left := killed.says(`Registered (whk_\w+)`)
	killed.kill()

	service, err := url.Parse(p.url)
	require.NoError(t, err)
	var removals atomic.Int32
	pass := httputil.NewSingleHostReverseProxy(service)
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete { // Another run is faster.
			removals.Add(1)
			if status, _ := p.send(http.MethodDelete, r.URL.Path, nil); status != http.StatusOK {
				t.Errorf("%s: %d", r.URL.Path, status)
			}
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(before.Close)
	l := p.listen("--events", "vote.created", "--url", before.URL)
	require.Equal(t, left, l.says(`Removed (whk_\w+)`))
	require.Zero(t, l.signal(syscall.SIGTERM))
	require.Equal(t, int32(2), removals.Load(), "what was left behind, and its own")
	require.Nil(t, p.first("/v1/webhooks"))
}

func TestListenAndTriggerExplainTheirErrors(t *testing.T) {
	tier.Slow(t, "runs a service and many commands")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	p.env = append(p.env, "EARSHOT_DIR="+t.TempDir())
	for want, args := range map[string][]string{
		"--forward wants a URL such as":              {"listen", "--port", "0", "--forward", "localhost:3000", "--url", p.url, "--key", p.key},
		"none of the others can be":                  {"listen", "--forward", "http://localhost:3000", "--secret", "whsec_x"},
		"events[0] must be one of":                   {"listen", "--port", "0", "--events", "post.made", "--url", p.url, "--key", p.key},
		"ERR_UNAUTHORIZED":                           {"listen", "--port", "0", "--events", "post.created", "--url", p.url, "--key", "esk_wrong"},
		"there is no stack in":                       {"trigger", "post.created"},
		"needs an API key: set EARSHOT_API_KEY, or":  {"trigger", "post.created", "--url", p.url},
		`there is no event "post.made"; the events`:  {"trigger", "post.made"},
		"ask the service":                            {"trigger", "post.created", "--url", "http://127.0.0.1:1", "--key", "esk_x"},
		"accepts 1 arg(s), received 0":               {"trigger"},
		"answered 404 Not Found, and not as the ser": {"trigger", "post.created", "--url", elsewhere(t), "--key", "esk_x"},
	} {
		out, err := p.command(args...)
		require.Error(t, err, "%v", args)
		require.Contains(t, out, want)
	}
	require.Nil(t, p.first("/v1/webhooks"))
}

// elsewhere returns the address of an unrelated server.
func elsewhere(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestTriggerMakesEveryEventHappen(t *testing.T) {
	tier.Slow(t, "makes every event happen")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	boards := 0
	for _, kind := range event.Types {
		receiver := testkit.NewReceiver(t)
		_, registered := p.send(http.MethodPost, "/v1/webhooks", map[string]any{"url": receiver.URL, "events": []string{string(kind)}})
		secret, _ := registered["secret"].(string)
		receiver.Verify(secret)
		things := p.trigger(string(kind))
		if things[0].Kind == "board" {
			boards++
		}
		got := receiver.Await(t, 1)[0]
		require.NoError(t, got.Invalid)
		require.Equal(t, string(kind), got.Header.Get("X-Service-Event"))
		require.Contains(t, string(got.Body), things[len(things)-1].ID, "it is about what was made last")
		status, _ := p.send(http.MethodDelete, "/v1/webhooks/"+fmt.Sprint(registered["id"]), nil)
		require.Equal(t, http.StatusOK, status)
	}
	require.Equal(t, 1, boards, "all runs share one board")
	require.Equal(t, "earshot trigger", p.first("/v1/boards")["name"])

	out, err := p.command("__complete", "trigger", "")
	require.NoError(t, err)
	for _, kind := range event.Types {
		require.Contains(t, out, string(kind), "shells complete the events")
	}
}
