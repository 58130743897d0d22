package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// secured requires the headers that every answer must have.
func secured(t *testing.T, a apptest.Answer, cache string) {
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
	app := apptest.Start(t, apptest.Options{})
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
	tier.Slow(t, "a browser runs the reference")
	tier.Needs(t, "chromium")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	for path, parts := range map[string][]string{
		"/v1/docs/reference#/operations/listBoards": {"List boards", "/v1/boards", "Bearer"},
		"/v1/docs/reference#/operations/createPost": {"Create a post", "Request Body"}, // an editor for the body
		"/v1/docs/reference":                        {"Feedback API"},
		"/v1/docs/errors":                           {"ERR_CONFLICT"},
	} {
		page := browse(t, app.URL+path)
		for _, part := range parts {
			require.Contains(t, page, part)
		}
	}
}

// browse opens a page in a browser and returns it after its scripts have run.
func browse(t *testing.T, url string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom", url)
	var said strings.Builder
	run.Stderr = &said
	page, err := run.Output()
	require.NoError(t, err, said.String())
	require.NotContains(t, said.String(), "Content Security Policy")
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "React Router Future Flag Warning") { // for the developers of the viewer
			require.NotContains(t, line, "CONSOLE", "errors and warnings of the page")
		}
	}
	return string(page)
}

// The README of the bundle has the checksums of the files on npm, so this test detects a change.
func TestTheViewerIsTheOneThatItsREADMENames(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("viewer/README.md")
	require.NoError(t, err)
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
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
		tag := n.Do(t, http.MethodGet, "/v1/docs/reference/"+name, nil).Header.Get("ETag")
		again := n.Do(t, http.MethodGet, "/v1/docs/reference/"+name, nil, "If-None-Match", tag)
		require.Equal(t, http.StatusNotModified, again.Status, "who has it isn't sent it again")
		require.Empty(t, again.Raw)
		require.Equal(t, tag, again.Header.Get("ETag"))
		require.Contains(t, string(readme), fmt.Sprintf("| `%s` | `%x` |", name, sha256.Sum256(inside)))
	}
}

// typing is a script for the page that acts as a reader of the reference. It types a key, goes to
// another operation and back, and returns the stored value.
const typing = `
localStorage.setItem("TryIt_securitySchemeValues", "of the version before");
addEventListener("load", async () => {
  const input = async () => {
    for (;;) {
      const found = document.querySelector('input[aria-label="Token"]');
      if (found) return found;
      await new Promise((again) => setTimeout(again, 50));
    }
  };
  const field = await input();
  const before = field.value;
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, "esk_typed");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  location.hash = "#/operations/listWebhooks";
  while (field.isConnected) await new Promise((again) => setTimeout(again, 50));
  const after = (await input()).value;
  document.title = JSON.stringify({ before, after, kept: JSON.stringify(localStorage) });
});`

func TestAnAPIKeyThatIsTypedIntoTheReferenceIsNotKept(t *testing.T) {
	tier.Slow(t, "a browser runs the reference")
	tier.Needs(t, "chromium")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	at, err := url.Parse(app.URL)
	require.NoError(t, err)
	pass := httputil.NewSingleHostReverseProxy(at)
	pass.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/v1/docs/reference" {
			return nil
		}
		page, err := io.ReadAll(r.Body)
		page = bytes.Replace(page, []byte("</header>"), []byte(`</header><script src="/typing.js"></script>`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(page)), int64(len(page))
		r.Header.Del("Content-Length")
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/typing.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, typing)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	page := browse(t, server.URL+"/v1/docs/reference#/operations/listBoards")
	title := regexp.MustCompile(`<title>(\{.*\})</title>`).FindStringSubmatch(page)
	require.NotNil(t, title, "the page has no field for a key")
	var seen struct{ Before, After, Kept string }
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(title[1])), &seen))
	require.NotContains(t, seen.Before, "of the version before")
	require.NotContains(t, seen.Kept, "TryIt_securitySchemeValues")
	require.NotContains(t, seen.Kept, "esk_typed")
	require.Contains(t, seen.After, "esk_typed", "as long as the page is there, the next operation has it")
}

func TestTheReferenceComesWithTheLicencesOfItsBundle(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	for name, part := range map[string]string{"LICENSE": "Apache License", "THIRD_PARTY.txt": "license"} {
		a := n.Do(t, http.MethodGet, "/v1/docs/reference/"+name, nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
		require.Contains(t, string(a.Raw), part)
	}
}
