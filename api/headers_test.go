package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
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
	for _, path := range []string{"/v1/docs", "/v1/docs/guide.css", "/v1/docs/errors", "/v1/docs/search?q=key"} {
		page := n.Do(t, http.MethodGet, path, nil)
		secured(t, page, "no-cache")
		require.NotContains(t, page.Header.Get("Content-Security-Policy"), "script-src", "the guide has no scripts")
	}
	page := n.Do(t, http.MethodGet, "/v1/docs/reference", nil)
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
	for path, parts := range map[string][]string{
		"/v1/docs/reference#/operations/listBoards": {"List boards", "/v1/boards", "Bearer"},
		"/v1/docs/errors": {"ERR_CONFLICT"},
	} {
		run := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
			"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom", app.URL+path)
		var said strings.Builder
		run.Stderr = &said
		page, err := run.Output()
		require.NoError(t, err, said.String())
		for _, part := range parts {
			require.Contains(t, string(page), part, said.String())
		}
		require.NotContains(t, said.String(), "Content Security Policy")
		for line := range strings.Lines(said.String()) {
			if !strings.Contains(line, "React Router Future Flag Warning") { // for whoever builds the viewer
				require.NotContains(t, line, "CONSOLE", "errors and warnings of the page")
			}
		}
	}
}

// Nobody changes the bundle unnoticed: its README has the sums of what npm has.
func TestTheViewerIsTheOneThatItsREADMENames(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("viewer/README.md")
	require.NoError(t, err)
	n := testkit.Start(t, testkit.Options{}).Tenant(t)
	for _, name := range []string{"elements.js", "elements.css"} {
		var answers [2][]byte
		for i, encoding := range []string{"identity", "gzip"} {
			a := n.Do(t, http.MethodGet, "/v1/docs/reference/"+name, nil, "Accept-Encoding", encoding)
			require.Equal(t, http.StatusOK, a.Status)
			require.Equal(t, "Accept-Encoding", a.Header.Get("Vary"))
			answers[i] = a.Raw
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(answers[1]))
		require.NoError(t, err)
		inside, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.Equal(t, answers[0], inside)
		require.Contains(t, string(readme), fmt.Sprintf("| `%s` | `%x` |", name, sha256.Sum256(inside)))
	}
}
