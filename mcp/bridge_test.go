package mcp_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

// desktop is the client at the other end of a bridge.
type desktop struct {
	to    *io.PipeWriter
	from  *io.PipeReader
	ended chan error
}

func newDesktop(t *testing.T, url, key string) *desktop {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	d := &desktop{to: to, from: from, ended: make(chan error, 1)}
	go func() {
		d.ended <- (&mcp.Bridge{URL: url, Key: key, In: in, Out: out}).Run(t.Context())
		_ = out.Close()
	}()
	t.Cleanup(func() { _, _ = to.Close(), from.Close() })
	return d
}

func TestADesktopClientUsesTheServicesToolsOverStdio(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	d := newDesktop(t, app.URL+"/", n.Key)
	client := sdk.NewClient(&sdk.Implementation{Name: "desktop", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: d.from, Writer: d.to}, nil)
	require.NoError(t, err)
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 18)
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "create_contact", Arguments: object{"name": "Dana"}})
	require.NoError(t, err)
	require.False(t, result.IsError)
	_, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "drop_everything"})
	require.ErrorContains(t, err, "unknown tool")
	require.NoError(t, session.Close())
	require.NoError(t, <-d.ended, "the bridge ends with its client")
	require.Len(t, n.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"], 1)
}

func TestMessagesPassABridgeAsTheyAre(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	d := newDesktop(t, app.URL, app.Tenant(t).Key)
	lines := bufio.NewReader(d.from)
	ask := func(message string) string {
		_, err := io.WriteString(d.to, message+"\n")
		require.NoError(t, err)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	require.Contains(t, ask(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{},"clientInfo":{"name":"d","version":"1"}}}`), `"protocolVersion":"2025-06-18"`)
	_, err := io.WriteString(d.to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(t, err)
	made := ask(`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"create_contact","arguments":` +
		`{"metadata":{"camelCase":12345678901234567890}}}}`)
	require.Contains(t, made, `"metadata":{"camelCase":12345678901234567890}`)
	require.Contains(t, made, `"id":"b"`)
	refused := ask(`{"jsonrpc":"2.0","id":"c","method":"nonsense"}`)
	require.Contains(t, refused, `"error"`)
	require.Contains(t, refused, `"id":"c"`)
	require.Contains(t, ask(`this is no JSON`), `"id":null`)
	require.ErrorContains(t, <-d.ended, "read a message")
}

func TestABridgeSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	n.Limit(t, 2)
	d := newDesktop(t, app.URL, n.Key)
	lines := bufio.NewReader(d.from)
	for _, wanted := range []string{`"tools":[`, `Try again in 30 seconds.`} {
		_, err := io.WriteString(d.to, listTools+"\n")
		require.NoError(t, err)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, wanted)
	}
}

func TestABridgeReadsEitherFormOfRetryAfterWithinADay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 12, 10, 41, 7, 500_000_000, time.UTC)
	for header, wanted := range map[string]int{
		"0": 0, "30": 30, "86401": 86400, "99999999999999999999999": 86400,
		"Thu, 12 Mar 2026 10:42:08 GMT": 61, "Thu, 12 Mar 2026 10:00:00 GMT": 0, "Fri, 12 Mar 9999 10:41:07 GMT": 86400,
		"Thursday, 12-Mar-26 10:42:08 GMT": 61, "Thu Mar 12 10:42:08 2026": 61,
	} {
		seconds, ok := mcp.RetryAfter(header, now)
		require.True(t, ok, header)
		require.Equal(t, wanted, seconds, header)
	}
	for _, header := range []string{"", "-1", "1.5", "soon", "2026-03-12T10:41:07Z"} {
		_, ok := mcp.RetryAfter(header, now)
		require.False(t, ok, header)
	}
}

func TestABridgeWithAWrongURLOrKeyReportsTheProblem(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	key := app.Tenant(t).Key
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, bad := range []struct{ url, key, wanted string }{
		{app.URL, "esk_nonsense", "doesn't take the API key"},
		{"feedback.example.com", key, "must look like https://"},
		{"ftp://feedback.example.com", key, "must look like https://"},
		{elsewhere.URL, key, "isn't the service"},
		{gone.URL, key, "reach the service"},
	} {
		err := (&mcp.Bridge{URL: bad.url, Key: bad.key, In: strings.NewReader(listTools), Out: io.Discard}).Run(t.Context())
		require.ErrorContains(t, err, bad.wanted)
		require.NotContains(t, err.Error(), bad.key)
	}
}
