package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

// listTools is a message that needs no session.
const listTools = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`

func calling(tool string, arguments any) object {
	return object{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": object{"name": tool, "arguments": arguments}}
}

func TestAKeyThatIsNotValidIsRefusedByTheProtocol(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true})
	n := app.Tenant(t)
	for _, header := range []string{"", "Bearer esk_nonsense", "Basic abc"} {
		a := post(t, n, listTools, "Authorization", header)
		require.Equal(t, http.StatusUnauthorized, a.Status)
		require.Equal(t, "Bearer", a.Header.Get("WWW-Authenticate"))
		require.Equal(t, "ERR_UNAUTHORIZED", a.Code())
	}
	_, err := connect(t.Context(), app.URL, "esk_nonsense")
	require.ErrorContains(t, err, "Unauthorized")
}

func TestAToolCallTakesATokenFromTheRequestBudget(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	n.Limit(t, 6)
	left := func(a apptest.Answer) string { return a.Header.Get("X-RateLimit-Remaining") }
	require.Equal(t, "5", left(n.Do(t, http.MethodGet, "/v1/boards", nil)))
	require.Equal(t, "4", left(post(t, n, calling("list_boards", object{}))))
	require.Equal(t, "3", left(post(t, n, listTools)))
	// In the protocol's first version, each call of a batch takes a token.
	require.Len(t, postBatch(t, app, n, 2, calling("list_boards", object{})), 2)
	require.Equal(t, "0", left(n.Do(t, http.MethodGet, "/v1/boards", nil)))
	a := post(t, n, calling("list_boards", object{}))
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "ERR_RATE_LIMITED", a.Code())
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 10, seconds, 1, "a token comes back in 10 seconds")
	require.Equal(t, http.StatusTooManyRequests, n.Do(t, http.MethodGet, "/v1/boards", nil).Status)
}

// batched is an answer within a batch.
type batched struct {
	Result struct {
		IsError           bool
		StructuredContent object
	}
}

// postBatch sends a call several times in one message.
func postBatch(t *testing.T, app *apptest.App, n *apptest.Tenant, calls int, call object) (answers []batched) {
	t.Helper()
	var batch []any
	for id := range calls {
		numbered := maps.Clone(call)
		numbered["id"] = id
		batch = append(batch, numbered)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, app.URL+mcp.Path, strings.NewReader(indented(t, batch)))
	require.NoError(t, err)
	r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	answer, err := withKey(n.Key).RoundTrip(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&answers))
	return answers
}

func TestABatchThatOutrunsTheBudgetSaysSoCallByCall(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	n.Limit(t, 2)
	answers := postBatch(t, app, n, 5, calling("list_boards", object{}))
	require.Len(t, answers, 5)
	require.Equal(t, 3, limited(t, answers))
}

// limited counts the calls that hit the rate limit. No call may fail for another reason.
func limited(t *testing.T, answers []batched) (n int) {
	t.Helper()
	for _, one := range answers {
		if one.Result.IsError {
			n++
			e := one.Result.StructuredContent["error"].(object)
			require.Equal(t, "ERR_RATE_LIMITED", e["code"])
			require.NotEmpty(t, e["details"].(object)["retry_after"])
		}
	}
	return n
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	host := strings.TrimPrefix(app.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for origin, wanted := range map[string]int{
		"": http.StatusOK, app.URL: http.StatusOK,
		"https://evil.example": http.StatusForbidden, "null": http.StatusForbidden,
		"http://evil.example:" + port: http.StatusForbidden, "http://" + host + ".evil.example": http.StatusForbidden,
	} {
		a := post(t, n, listTools, "Origin", origin)
		require.Equal(t, wanted, a.Status, origin)
		if wanted != http.StatusOK {
			require.Equal(t, "ERR_FORBIDDEN", a.Code())
			require.Equal(t, "foreign_origin", a.Details()["reason"])
		}
	}
	// DNS rebinding: the host name of the attacker's page resolves to this server, so Origin and
	// Host agree.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, app.URL+mcp.Path, strings.NewReader(listTools))
	require.NoError(t, err)
	r.Host = "evil.example:" + port
	r.Header.Set("Origin", "http://"+r.Host)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestAnyProcessAnswersAnyMessage(t *testing.T) {
	t.Parallel()
	one := apptest.Start(t, apptest.Options{})
	two := apptest.Start(t, apptest.Options{DatabaseURL: one.Config.DatabaseURL})
	n := one.Tenant(t)
	var targets []*url.URL
	for _, app := range []*apptest.App{one, two} {
		u, err := url.Parse(app.URL)
		require.NoError(t, err)
		targets = append(targets, u)
	}
	// The balancer never sends two messages in a row to the same process.
	var turn atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(targets[turn.Add(1)%2])
	}})
	t.Cleanup(balancer.Close)
	session, err := connect(t.Context(), balancer.URL, n.Key)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	for i := range 6 {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "create_contact", Arguments: object{"external_user_id": strconv.Itoa(i)},
		})
		require.NoError(t, err)
		require.False(t, result.IsError)
	}
	require.Len(t, n.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"], 6)
	require.Empty(t, session.ID(), "no session is kept")
}

func TestInvalidMessagesAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	unchanged := n.Watch(t)
	for what, message := range map[string]any{
		"no JSON": "{", "no message": "{}", "an empty batch": "[]", "a number": "7", "nothing": "",
		"no method":           `{"jsonrpc":"2.0","id":1}`,
		"an unknown method":   `{"jsonrpc":"2.0","id":1,"method":"tools/destroy","params":{}}`,
		"an unknown tool":     calling("drop_everything", object{}),
		"no tool":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`,
		"too large a message": `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`,
	} {
		a := post(t, n, message)
		if a.Status == http.StatusOK {
			require.Contains(t, string(a.Raw), `"error"`, what)
		} else {
			require.Less(t, a.Status, 500, what)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		a := n.Do(t, method, mcp.Path, nil)
		require.Equal(t, http.StatusMethodNotAllowed, a.Status)
		require.Equal(t, http.MethodPost, a.Header.Get("Allow"))
	}
	unchanged(t)
}

func TestAMessageThatIsNoValidCallGetsAnErrorOfJSONRPC(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	const unknown, invalid, broken = -32601, -32600, -32700
	for name, bad := range map[string]struct {
		message any
		header  []string
		status  int
		code    int
		id      string
	}{
		"an unknown method":            {message: `{"jsonrpc":"2.0","id":1,"method":"foo/bar"}`, status: 200, code: unknown, id: "1"},
		"an optional method":           {message: `{"jsonrpc":"2.0","id":"a","method":"tasks/list","params":{}}`, status: 200, code: unknown, id: `"a"`},
		"an unknown method in a batch": {message: `[{"jsonrpc":"2.0","id":1,"method":"foo/bar"}]`, status: 400, code: unknown, id: "null"},
		"broken JSON":                  {message: `{"jsonrpc":"2.0","id":1,`, status: 400, code: broken, id: "null"},
		"nothing":                      {message: "", status: 400, code: broken, id: "null"},
		"no message":                   {message: "{}", status: 400, code: invalid, id: "null"},
		"an empty batch":               {message: "[]", status: 400, code: invalid, id: "null"},
		"a number":                     {message: "7", status: 400, code: invalid, id: "null"},
		"another version of JSON-RPC":  {message: `{"jsonrpc":"1.0","id":-1,"method":"ping"}`, status: 400, code: invalid, id: "-1"},
		"an id that is an object":      {message: `{"jsonrpc":"2.0","id":{},"method":"ping"}`, status: 400, code: invalid, id: "null"},
		"a call without parameters":    {message: `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, status: 400, code: invalid, id: "1"},
		"deep nesting": {
			message: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`,
			status:  400, code: invalid, id: "1",
		},
		"an answer that the client can't read": {message: listTools, header: []string{"Accept", "text/html"}, status: 400, code: invalid, id: "7"},
		"another media type":                   {message: listTools, header: []string{"Content-Type", "text/plain"}, status: 415, code: invalid, id: "7"},
		"an unknown version of the protocol": {
			message: listTools, header: []string{"Mcp-Protocol-Version", "1999-01-01"}, status: 400, code: invalid, id: "7",
		},
		"too large a message": {
			message: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, status: 413, code: invalid, id: "null",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := post(t, n, bad.message, bad.header...)
			require.Equal(t, bad.status, a.Status, "%s", a.Raw)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"), "%s", a.Raw)
			var got struct {
				JSONRPC string
				ID      json.RawMessage
				Error   struct {
					Code    int
					Message string
				}
			}
			require.NoError(t, json.Unmarshal(a.Raw, &got))
			require.Equal(t, "2.0", got.JSONRPC)
			require.Equal(t, bad.id, string(got.ID))
			require.Equal(t, bad.code, got.Error.Code)
			require.NotEmpty(t, got.Error.Message)
		})
	}
}

func TestAMessageThatIsCutOffGetsAnErrorOfJSONRPC(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(app.URL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000\r\n\r\n{\"jsonrpc\":", mcp.Path, n.Key)
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message could not be read to its end"}}`, string(raw))
}

func TestANotificationGetsNoErrorOfJSONRPC(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	a := post(t, n, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Equal(t, http.StatusAccepted, a.Status)
	require.Empty(t, a.Raw)
	a = post(t, n, `{"jsonrpc":"2.0","method":"notifications/unheard_of"}`)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.NotContains(t, string(a.Raw), "jsonrpc")
}

// An idle stream would occupy a connection and prevent a process from stopping.
func TestThereIsNothingToListenTo(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	const newest = "2026-07-28"
	a := post(t, app.Tenant(t), `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"`+newest+`","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`,
		"Mcp-Protocol-Version", newest, "Mcp-Method", "subscriptions/listen")
	require.Contains(t, string(a.Raw), `"resultType":"complete"`, "the answer ended")
}

func TestACallIsLoggedWithItsToolAndItsOperationAndNoContents(t *testing.T) {
	t.Parallel()
	logs := testkit.NewLogs()
	app := apptest.Start(t, apptest.Options{Logs: logs.Logger()})
	n := app.Tenant(t)
	answer := post(t, n, calling("create_contact", object{"email": "dana@secret.example"}), "X-Request-Id", "agent-1")
	require.Equal(t, "agent-1", answer.Header.Get("X-Request-Id"))
	require.Contains(t, logs.String(), `"route":"/v1/contacts"`)
	require.Contains(t, logs.String(), `"tool":"create_contact"`)
	require.Contains(t, logs.String(), `"route":"/mcp"`)
	require.Len(t, regexp.MustCompile(`"route":.*"requestId":"agent-1"|"requestId":"agent-1".*"route":`).FindAllString(logs.String(), -1), 2)
	require.NotContains(t, logs.String(), "secret.example")
	require.NotContains(t, logs.String(), n.Key)
}
