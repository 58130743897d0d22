package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/publicid"
)

const interrupt = syscall.SIGTERM

// failures are all errors of attempts.
var failures = []string{
	"blocked_address", "connection_refused", "connection_reset", "dns_error", "http_status", "invalid_url", "redirect",
	"timeout", "tls_error",
}

// tell plays all chapters.
func (s *story) tell() {
	fine, broken := s.receivers()
	s.feedback()
	s.keys()
	s.refuse()
	require.EventuallyWithT(s.t, func(c *assert.CollectT) {
		require.ElementsMatch(c, failures, s.failed(c), "the ways in which attempts failed")
		_, data := s.send(http.MethodGet, "/v1/webhooks/"+broken, nil)
		require.Equal(c, "failures", data["disabledReason"])
		require.GreaterOrEqual(c, len(s.mails.all()), 3, "refused, tried again, taken")
	}, 3*waitLimit, pollInterval)
	s.again(fine)
	s.break500(fine)
}

// receivers registers a webhook for each behaviour of a receiver. It returns a healthy one and one
// that answers 500.
func (s *story) receivers() (fine, broken string) {
	c, t := s.planted, s.t
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Answer", c["answer's header"][0])
			w.Header().Set("Location", "https://"+c["Location"][0]+".example.com/"+c["Location"][0]+"?token="+c["Location"][0])
			http.Error(w, "sorry "+c["receiver's answer"][0], status)
		}
	}
	for _, as := range []string{"answer's header", "Location", "receiver's answer", "status line"} {
		c.plant(as)
	}
	everything := []string{
		"post.created", "comment.created", "vote.created", "changelog.published", "contact.created", "contact.updated",
	}
	fine = s.hook(receiver(t, answer(http.StatusOK)), everything...)
	broken = s.hook(receiver(t, answer(http.StatusInternalServerError)), "post.created")
	garbage := c["status line"][0]
	for _, origin := range []string{
		receiver(t, answer(http.StatusFound)), encrypted(t), nobody(t), "http://nobody.invalid",
		says(t, ""), says(t, "HTTP/1.1 "), says(t, "HTTP/1.1 "+garbage+" "+garbage+"\r\n"+garbage+"\r\n\r\n"),
	} {
		s.hook(origin, "changelog.published")
	}
	// Rows from before the guard, which would be refused today. They are also older than sealed
	// URLs, until a rotation seals them.
	for _, origin := range []string{"http://10.1.2.3", "ftp://127.0.0.1"} {
		id, err := publicid.Parse[publicid.Webhook](s.hook(nobody(t), "changelog.published"))
		require.NoError(t, err)
		s.exec(t, "UPDATE webhooks SET url = $1, url_sealed = NULL WHERE id = $2", origin+s.path(), id.UUID().String())
	}
	said, err := s.command("secrets", "rotate")
	require.NoError(t, err, said)
	listed, err := s.command("secrets", "list")
	require.NoError(t, err, listed)
	keys, err := s.command("key", "revoke", "key_"+strings.Repeat("0", 26))
	require.Error(t, err)
	s.said = said + listed + keys
	return fine, broken
}

// feedback causes every event.
func (s *story) feedback() {
	c := s.planted
	contact := s.must(http.MethodPost, "/v1/contacts", map[string]any{
		"externalUserId": "customer-1", "email": c.plant("contact's address") + "@example.com", "name": c.plant("contact's name"),
		"metadata": map[string]any{c.plant("metadata's key"): c.plant("metadata's value")},
	})
	s.must(http.MethodPatch, "/v1/contacts/"+contact, map[string]any{"name": c.plant("contact's name")})
	s.must(http.MethodPost, "/v1/contacts/identify", map[string]any{
		"externalUserId": "customer-1", "email": c.plant("another address") + "@example.com", "name": c.plant("another name"),
	})
	board := s.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	text := func(as string) map[string]any { return map[string]any{"text": c.plant(as)} }
	var post string
	for range 10 { // Each has five attempts, and 50 disable a webhook.
		post = s.must(http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{
			"title": c.plant("post's title"), "body": text("post's text"), "contactId": contact,
		})
	}
	s.must(http.MethodPost, "/v1/posts/"+post+"/votes", nil)
	s.must(http.MethodPost, "/v1/posts/"+post+"/comments", map[string]any{"body": text("comment's text")})
	s.must(http.MethodPost, "/v1/contacts/"+contact+"/export", nil)
	s.first("/v1/boards/" + board + "/posts?q=" + c.plant("search"))
	s.first("/v1/contacts?q=" + c.plant("search") + "&email=" + c.plant("search") + "%40example.com")
	s.must(http.MethodPost, "/v1/boards/"+board+"/changelog", map[string]any{
		"title": c.plant("entry's title"), "body": text("entry's text"), "publishedAt": time.Now().Add(time.Second),
	})
}

// keys makes and removes API keys.
func (s *story) keys() {
	_, made := s.send(http.MethodPost, "/v1/api-keys", map[string]any{"name": "second", "scope": "read"})
	s.rememberKey(made["key"])
	_, rotated := s.send(http.MethodPost, fmt.Sprintf("/v1/api-keys/%s/rotate", made["id"]), map[string]any{"overlapSeconds": 60})
	revoked := s.rememberKey(rotated["key"])
	s.must(http.MethodDelete, fmt.Sprintf("/v1/api-keys/%s", rotated["id"]), nil)
	require.Eventually(s.t, func() bool {
		kept := s.key
		defer func() { s.key = kept }()
		s.key = revoked
		status, _ := s.send(http.MethodGet, "/v1/me", nil)
		return status == http.StatusUnauthorized
	}, waitLimit, pollInterval)
	s.refused(http.StatusUnauthorized, http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+revoked)
}

// refuse causes every kind of refused request.
func (s *story) refuse() {
	c := s.planted
	wrong := func() string { return c.plant("what was refused") }
	s.refused(401, http.MethodGet, "/v1/me", "", "Authorization", "Bearer esk_"+wrong()+strings.Repeat("0", 20))
	s.refused(401, http.MethodGet, "/v1/me", "", "Authorization", "Basic "+wrong())
	s.refused(404, http.MethodGet, "/v1/"+wrong()+"?token="+wrong(), "")
	s.refused(405, http.MethodPut, "/v1/me?token="+wrong(), "")
	s.refused(409, http.MethodPost, "/v1/contacts", `{"externalUserId": "customer-1", "name": "`+wrong()+`"}`)
	s.refused(413, http.MethodPost, "/v1/boards", `{"name": "`+strings.Repeat(wrong(), 100_000)+`"}`)
	s.refused(415, http.MethodPost, "/v1/boards", wrong(), "Content-Type", "text/"+wrong())
	for _, body := range []string{
		`{"name": "` + wrong(), `{"name": ` + wrong() + `}`, `{"name": ["` + wrong() + `"]}`, `"` + wrong() + `"`,
		`{"name": "` + strings.Repeat(wrong(), 20) + `"}`,
	} {
		s.refused(422, http.MethodPost, "/v1/boards", body)
	}
	s.refused(404, http.MethodGet, "/v1/posts/"+wrong(), "")
	s.refused(422, http.MethodGet, "/v1/boards?cursor="+wrong()+"&limit="+wrong(), "")
	s.refused(422, http.MethodPost, "/v1/contacts", `{"email": "`+wrong()+`", "mrrCents": "`+wrong()+`", "metadata": "`+wrong()+`"}`)
	for _, url := range []string{
		"https://user:" + wrong() + "@example.com/", "https://10.0.0.1/" + wrong() + "?token=" + wrong(), "https://a b/" + wrong(),
		"ftp://example.com/" + wrong(), "https://example.com/%zz" + wrong(), "https://[::1/" + wrong(),
	} {
		s.refused(422, http.MethodPost, "/v1/webhooks", `{"url": "`+url+`", "events": ["`+wrong()+`"]}`)
	}
}

// again replays, tests and recovers.
func (s *story) again(webhook string) {
	sent := s.first("/v1/webhooks/" + webhook + "/deliveries")["id"]
	s.must(http.MethodPost, fmt.Sprintf("/v1/webhooks/%s/deliveries/%s/replay", webhook, sent), nil)
	s.must(http.MethodPost, "/v1/webhooks/"+webhook+"/test", nil)
	status, _ := s.send(http.MethodPost, "/v1/webhooks/"+webhook+"/recover", map[string]any{"since": time.Now().Add(-time.Hour)})
	require.Equal(s.t, http.StatusAccepted, status)
	c, err := client.Dial(s.namespace)
	require.NoError(s.t, err)
	defer c.Close()
	run, err := c.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{TaskQueue: "earshot"}, "replay_delivery", sent)
	require.NoError(s.t, err)
	require.NoError(s.t, run.Get(s.t.Context(), nil))
	require.Eventually(s.t, func() bool {
		return s.first("/v1/webhooks/" + webhook + "/recoveries")["status"] == "completed"
	}, waitLimit, pollInterval)
}

// break500 stores a URL that can't be opened, which is an error of the service.
func (s *story) break500(webhook string) {
	id, err := publicid.Parse[publicid.Webhook](webhook)
	require.NoError(s.t, err)
	s.exec(s.t, "UPDATE webhooks SET url_sealed = 'damaged' WHERE id = $1", id.UUID().String())
	s.refused(http.StatusInternalServerError, http.MethodGet, "/v1/webhooks/"+webhook, "")
}

// failed returns the errors of all attempts so far.
func (s *story) failed(t require.TestingT) []string {
	c, err := pgx.Connect(s.t.Context(), s.database)
	require.NoError(t, err)
	defer func() { _ = c.Close(s.t.Context()) }()
	rows, err := c.Query(s.t.Context(), "SELECT DISTINCT error FROM attempts WHERE error <> ''")
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}
