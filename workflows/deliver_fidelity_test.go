package workflows_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// nasty is metadata that a decoder on the way would change: the order of keys, numbers beyond a
// double, separators at which JavaScript breaks lines, and 100 keys of four-byte letters.
func nasty() string {
	var keys strings.Builder
	for i := range 96 {
		fmt.Fprintf(&keys, `,"%s":%d`, strings.Repeat(string(rune(0x1F600+i)), 3), i)
	}
	return `{"zebra":1,"alpha":2,"n":[9007199254740993,1e400],"s":"` + "\u2028 <b>&" + `"` + keys.String() + `}`
}

func TestAPayloadArrivesByteForByteAtEachAttemptInAReplayAndInTheLog(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	receiver := testkit.NewReceiver(t)
	b.webhook = b.tenant.Register(t, receiver, "contact.created", "comment.created")
	long := strings.Repeat("漢", 50_000)
	post := b.tenant.ID(t, "/v1/boards/"+b.board+"/posts", map[string]any{"title": "Dark mode"})
	for sent, request := range map[string]func(){
		nasty(): func() {
			b.tenant.ID(t, "/v1/contacts", `{"externalUserId":"1","name":"Zoë — 漢字 🚀","metadata":`+nasty()+`}`)
		},
		`"` + long + `"`: func() {
			b.tenant.ID(t, "/v1/posts/"+post+"/comments", map[string]any{"body": map[string]any{"text": long}})
		},
	} {
		before := len(receiver.All())
		receiver.Answer(answersAfter(before, 500))
		request()
		attempts := receiver.Await(t, before+2)[before:]
		first := string(attempts[0].Body)
		require.True(t, strings.Contains(first, escaped(sent)))
		log := "/v1/webhooks/" + b.webhook + "/deliveries/" + attempts[0].DeliveryID()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			require.Equal(c, "succeeded", b.tenant.Make(t, http.MethodGet, log, nil)["status"])
		}, testkit.Wait, testkit.Tick)
		b.tenant.ID(t, log+"/replay", nil)
		for i, got := range receiver.Await(t, before+3)[before:] {
			require.Equal(t, first, string(got.Body), "request %d", i)
			require.NoError(t, got.Invalid)
		}
		var shown struct {
			Data struct{ Payload json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(b.tenant.Do(t, http.MethodGet, log, nil).Raw, &shown))
		require.Equal(t, first, string(shown.Data.Payload))
	}
}

// escaped returns JSON as events write it: the same text, with the special characters of HTML and
// JavaScript escaped.
func escaped(document string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "\u2028", `\u2028`).Replace(document)
}

// answersAfter returns answers for the requests after the first n.
func answersAfter(n int, statuses ...int) func(int, testkit.Received) int {
	answer := answers(statuses...)
	return func(i int, got testkit.Received) int { return answer(i-n, got) }
}

func TestARowFromBeforeTheGuardIsRefusedAtItsAttempt(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Worker: true, Environ: []string{"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32"}})
	for name, c := range map[string]struct{ url, failure string }{
		"an inner address":              {"http://127.0.0.2:%s/hook", "blocked_address"},
		"an inner address in disguise":  {"http://[::ffff:127.0.0.2]:%s/hook", "blocked_address"},
		"a spelling for resolvers only": {"http://127.2:%s/hook", "blocked_address"},
		"a user":                        {"http://user:pass@127.0.0.1:%s/hook", "invalid_url"},
		"another scheme":                {"ftp://127.0.0.1:%s/hook", "invalid_url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, app)
			listener, err := net.Listen("tcp", "0.0.0.0:0") // at each of the addresses
			require.NoError(t, err)
			t.Cleanup(func() { _ = listener.Close() })
			called := make(chan struct{})
			go func() {
				if c, err := listener.Accept(); err == nil {
					_ = c.Close()
					close(called)
				}
			}()
			_, port, err := net.SplitHostPort(listener.Addr().String())
			require.NoError(t, err)
			id, err := publicid.Parse[publicid.Webhook](b.webhook)
			require.NoError(t, err)
			_, err = b.app.Pool.Exec(t.Context(), "UPDATE webhooks SET url = $1, url_sealed = NULL WHERE id = $2",
				fmt.Sprintf(c.url, port), id.UUID().String())
			require.NoError(t, err)
			b.post(t)
			failed := b.delivery(t, "failed")
			require.Equal(t, c.failure, failed["lastError"])
			require.Len(t, failed["attempts"], 5)
			select {
			case <-called:
				require.Fail(t, "it was called")
			default:
			}
		})
	}
}

func TestNothingSecretOrPersonalEntersAHistory(t *testing.T) {
	t.Parallel()
	b := newBundle(t, working.Start(t))
	b.receiver.Answer(answers(500))
	hidden := b.receiver.URL + "?token=very-secret"
	b.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+b.webhook, map[string]any{"url": hidden})
	b.post(t)
	id := b.receiver.Await(t, 2)[0].DeliveryID()
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	var history strings.Builder
	events := b.app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history.WriteString(protojson.Format(event))
		for _, p := range event.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads() {
			history.Write(p.GetData())
		}
	}
	require.Contains(t, history.String(), b.webhook)
	for _, text := range []string{"whsec_", "very-secret", "/hook", "Dark mode"} {
		require.NotContains(t, history.String(), text)
	}
}
