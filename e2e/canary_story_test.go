package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
)

// story is a deployment in which every customer's value is a canary.
type story struct {
	*program
	planted canaries
	known   map[string]string

	database  string // Its login has no canary.
	namespace client.Options
	mails     *mailServer
	traces    *spanCollector

	api, working              *process
	apiMetrics, workerMetrics string
	// refusals has the error answers, and said the output of commands.
	refusals bytes.Buffer
	said     string
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{planted: canaries{}, database: testkit.Database(t), namespace: testkit.NewNamespace(t)}
	c := s.planted
	s.mails = newMailServer(t, c.plant("mail server's user"), c.plant("mail server's password"))
	s.traces = newSpanCollector(t, c.plant("collector's key"))
	key := func(as string) string { // 32 bytes that end in the word.
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 10) + c.plant(as)))
	}
	settings := append(settingsOf(s.namespace),
		"EARSHOT_LOG_LEVEL=debug", "EARSHOT_DRAIN_TIMEOUT=2s", "EARSHOT_EMAIL_HASH_KEY="+key("hash key"),
		"EARSHOT_SECRET_KEYS=k2:"+key("sealing key")+",k1:"+key("sealing key"),
		"EARSHOT_SMTP_URL=smtp://"+s.mails.user+":"+s.mails.password+"@"+s.mails.address,
		"EARSHOT_MAIL_FROM="+c.plant("sender's address")+"@example.com",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,0s,0s,0s", "EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts",
	)
	settings = append(settings, s.traces.settings()...)
	s.program = newProgramOn(t, s.asRole(t, c.plant("database's password")), settings...)
	var org, made map[string]any
	s.json(&org, "org", "create", c.plant("organization's name"), "--json",
		"--owner-email", c.plant("member's address")+"@example.com", "--owner-name", c.plant("member's name"))
	s.json(&made, "key", "create", "--json", "--org", fmt.Sprint(org["id"]), "--name", c.plant("key's name"))
	s.key = s.rememberKey(made["key"])
	s.apiMetrics, s.workerMetrics = free(t), free(t)
	s.api = s.start([]string{"serve", "--no-worker"}, "EARSHOT_METRICS_LISTEN="+s.apiMetrics)
	s.awaitStatus("/readyz", http.StatusOK)
	s.working = s.worker("EARSHOT_METRICS_LISTEN=" + s.workerMetrics)
	return s
}

func free(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort()
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// asRole returns the database's URL with a new role that has the given password.
func (s *story) asRole(t *testing.T, password string) string {
	t.Helper()
	role := "story_" + password[len(password)-8:]
	s.exec(t, "CREATE ROLE "+role+" SUPERUSER LOGIN PASSWORD '"+password+"'")
	t.Cleanup(func() { s.exec(t, "DROP ROLE "+role) })
	u, err := url.Parse(s.database)
	require.NoError(t, err)
	u.User = url.UserPassword(role, password)
	return u.String()
}

func (s *story) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // at the end, too
	c, err := pgx.Connect(ctx, s.database)
	require.NoError(t, err)
	defer func() { _ = c.Close(ctx) }()
	_, err = c.Exec(ctx, sql, args...)
	require.NoError(t, err)
}

// rememberKey makes a key a canary, except for its beginning, which people see to recognize it.
func (s *story) rememberKey(key any) string {
	text, _ := key.(string)
	require.Greater(s.t, len(text), 40)
	s.planted.remember("API key", text[12:])
	return text
}

// hook registers a webhook, with a token in path and query, and returns its id.
func (s *story) hook(origin string, events ...string) string {
	s.t.Helper()
	status, made := s.send(http.MethodPost, "/v1/webhooks", map[string]any{"url": origin + s.path(), "events": events})
	require.Equal(s.t, http.StatusCreated, status, origin)
	s.planted.remember("webhook's secret", strings.TrimPrefix(fmt.Sprint(made["secret"]), "whsec_"))
	return fmt.Sprint(made["id"])
}

// path returns the path and query of a URL, with tokens.
func (s *story) path() string {
	return "/" + s.planted.plant("URL's path") + "?token=" + s.planted.plant("URL's query")
}

// refused makes a request that must fail and keeps its whole answer.
func (s *story) refused(status int, method, path, body string, header ...string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("User-Agent", s.planted.plant("User-Agent"))
	r.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	r.Header.Set("tracestate", "other="+s.planted.plant("tracestate"))
	r.Header.Set("baggage", "other="+s.planted.plant("baggage"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := httpClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, status, answer.StatusCode, "%s %s: %s", method, path, text)
	fmt.Fprintf(&s.refusals, "%v\n%s\n", answer.Header, text)
}
