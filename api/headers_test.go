package api_test

import (
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// secured holds an answer against what every answer has to say.
func secured(t *testing.T, a testkit.Answer, cache string) {
	t.Helper()
	for header, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": cache,
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Server": "", "X-Powered-By": "", "Access-Control-Allow-Origin": "",
	} {
		require.Equal(t, want, a.Header.Get(header), header)
	}
	require.NotEmpty(t, a.Header.Get("Permissions-Policy"))
	policy := a.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe")
}

func TestEveryAnswerTellsBrowsersAndCachesToLeaveItAlone(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{})
	n := newFixture(t, app)
	everyOperation(t, nil, func(t *testing.T, o operation) {
		secured(t, n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "Authorization", ""), "no-store")
		secured(t, n.Do(t, o.method, o.filled(t, n.ids), "{", "Origin", "https://a.example"), "no-store")
	})
	secured(t, n.Do(t, http.MethodGet, "/v1/me", nil), "no-store")
	preflight := []string{"Origin", "https://a.example", "Access-Control-Request-Method", "GET"}
	secured(t, n.Do(t, http.MethodOptions, "/v1/me", nil, preflight...), "no-store")
	secured(t, n.Do(t, http.MethodGet, "/v1/none", nil), "no-store")
	secured(t, n.Do(t, http.MethodGet, "/healthz", nil), "no-store")
	secured(t, n.Do(t, http.MethodGet, "/v1/openapi.json", nil), "no-cache")
	page := n.Do(t, http.MethodGet, "/v1/docs", nil)
	secured(t, page, "no-cache")
	file := regexp.MustCompile(`src="(/v1/docs/[^"]+)"`).FindSubmatch(page.Raw)
	require.NotNil(t, file)
	secured(t, n.Do(t, http.MethodGet, string(file[1]), nil), "no-cache")
}

// A browser runs the page, which needs its scripts, styles and the contract.
func TestTheDocumentationWorksInABrowserUnderItsPolicy(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	app := testkit.Start(t, testkit.Options{})
	at, err := url.Parse(app.URL)
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom", at.JoinPath("/v1/docs").String())
	var said strings.Builder
	run.Stderr = &said
	page, err := run.Output()
	require.NoError(t, err, said.String())
	for _, o := range []string{"List boards", "/v1/me", "opblock-summary"} {
		require.Contains(t, string(page), o, said.String())
	}
	require.NotContains(t, said.String(), "Content Security Policy")
	require.NotContains(t, said.String(), "CONSOLE", "errors and warnings of the page")
}
