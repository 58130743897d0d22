package e2e

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit/tier"
)

// inBrowser runs a play of e2e/browser and checks the number of its successful steps.
func inBrowser(t *testing.T, play string, plays int, env ...string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	require.NoError(t, err)
	n := newNodeProject(t, "browser", append(env, "CHROMIUM="+chromium)...)
	said := n.mustRun("npm", "run", play)
	require.Equal(t, plays, strings.Count(said, "ok: "), said)
	t.Log(said)
}

// TestPublicBoardsInABrowser lets e2e/browser vote, post and comment as end-users do, without
// scripts, and check every page with axe. PUBLIC_BOARD_SHOTS is a directory for screenshots.
func TestPublicBoardsInABrowser(t *testing.T) {
	tier.Slow(t, "a browser visits every page")
	tier.Needs(t, "node", "npm", "chromium")
	t.Parallel()
	mailbox := t.TempDir()
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_MAIL_DIR="+mailbox)...)
	p.serve()
	_, err := p.command("org", "update", "--slug", "northwind", "--color", "#0f766e")
	require.NoError(t, err)
	board := "/v1/boards/" + p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas", "public": true})
	for _, title := range []string{"Dark mode", "Light mode"} {
		p.must(http.MethodPost, board+"/posts", map[string]any{"title": title, "body": map[string]any{"text": "It would help us every day."}})
	}
	p.must(http.MethodPost, board+"/changelog", map[string]any{"title": "It is dark", "publishedAt": time.Now().UTC().Format(time.RFC3339Nano)})

	inBrowser(t, "public", 7, "SERVICE="+p.url, "API_KEY="+p.key, "MAIL="+mailbox, "PREFERENCES="+p.preferences("northwind"), "SHOTS="+os.Getenv("PUBLIC_BOARD_SHOTS"))
	rosa := p.first("/v1/contacts?email=rosa@example.com")
	require.Equal(t, []any{"public_post", "public_interaction_opt_in", "Rosa"}, []any{rosa["source"], rosa["consentBasis"], rosa["name"]})
	require.Nil(t, p.first("/v1/contacts?email=quentin@example.com"), "who didn't opt in is no contact")
	require.Nil(t, p.first("/v1/contacts?email=vera@example.com"), "who was erased is none, though her browser knew her")
}

// preferences returns the link to a contact's e-mail preferences, as e-mails have it.
func (p *program) preferences(slug string) string {
	p.t.Helper()
	const address = "reader@example.com"
	p.must(http.MethodPost, "/v1/contacts/identify", map[string]any{"externalUserId": "reader", "email": address})
	of, err := publicid.Parse[publicid.Organization](p.must(http.MethodGet, "/v1/organization", nil))
	require.NoError(p.t, err)
	// configured uses the same key.
	key := []byte(strings.Repeat("k", 32))
	own, err := hkdf.Key(sha256.New, key, nil, "earshot preferences", sha256.Size)
	require.NoError(p.t, err)
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(address))
	sum, raw, mac := hash.Sum(nil), of.UUID(), hmac.New(sha256.New, own)
	mac.Write(raw[:])
	mac.Write(sum)
	return p.url + "/b/" + slug + "/-/preferences?token=" + base64.RawURLEncoding.EncodeToString(mac.Sum(sum))
}

// TestTheWidgetInABrowserOnAnotherSite lets e2e/browser use the widget as a person does and write a
// post. The page is on another site and has a strict policy, and the browser blocks third-party
// cookies.
func TestTheWidgetInABrowserOnAnotherSite(t *testing.T) {
	tier.Slow(t, "a browser plays the widget")
	tier.Needs(t, "node", "npm", "chromium")
	t.Parallel()
	mailbox := t.TempDir()
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_MAIL_DIR="+mailbox)...)
	p.serve()
	_, err := p.command("org", "update", "--slug", "northwind")
	require.NoError(t, err)
	board := "/v1/boards/" + p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas", "public": true})
	for _, title := range []string{"Dark mode", "Light mode"} {
		p.must(http.MethodPost, board+"/posts", map[string]any{"title": title})
	}
	site := newSite(t, p, board)
	p.must(http.MethodPut, "/v1/widget/origins", map[string]any{"origins": []string{site.origin("shop")}})

	inBrowser(t, "widget", 10, "SERVICE="+p.url, "MAIL="+mailbox, "SITE="+site.origin("shop"), "OTHER_SITE="+site.origin("other"), "PROFILE="+t.TempDir(),
		"SHOTS="+os.Getenv("PUBLIC_BOARD_SHOTS"))
	known := p.first("/v1/contacts?externalUserId=acct-7")
	require.Equal(t, "identify", known["source"])
	require.Equal(t, "Ada", known["name"])
}

// site is a customer's site, whose pages embed the widget.
type site struct {
	*httptest.Server
	program *program
	board   string
	token   string
}

func newSite(t *testing.T, p *program, board string) *site {
	t.Helper()
	s := &site{program: p, board: board, token: widgetToken(t, p)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "window.Earshot = window.Earshot || function () { (Earshot.q = Earshot.q || []).push(arguments); };\nwindow.token = %q;\nEarshot('identify', token);\n", s.token)
	})
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, _ *http.Request) {
		p.must(http.MethodPost, board+"/changelog", map[string]any{"title": "It is dark", "publishedAt": time.Now().UTC().Format(time.RFC3339Nano)})
		w.WriteHeader(http.StatusNoContent)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// origin returns one of the site's origins. Browsers treat them as different sites.
func (s *site) origin(name string) string {
	return "http://" + name + ".localhost:" + s.URL[strings.LastIndex(s.URL, ":")+1:]
}

// page serves a page with exactly the policy that docs/widget.md requires.
func (s *site) page(w http.ResponseWriter, _ *http.Request) {
	service := s.program.url
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self' "+service+"; connect-src 'self' "+service+"; frame-src "+service+
		"; require-trusted-types-for 'script'")
	fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>Shop</title><body><p><a id="outside" href="/">Shop</a></p>
<script src="/page.js"></script>
<script src="%s/widget.js" data-workspace="northwind" data-board="ideas" async></script></body></html>`, service)
}

// widgetToken returns a token that the site's server has signed.
func widgetToken(t *testing.T, p *program) string {
	t.Helper()
	_, secret := p.send(http.MethodPost, "/v1/widget/secrets", nil)
	_, me := p.send(http.MethodGet, "/v1/me", nil)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "acct-7", "name": "Ada", "iss": me["organization"].(map[string]any)["id"], "aud": "widget",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = secret["id"]
	text, err := token.SignedString([]byte(secret["secret"].(string)))
	require.NoError(t, err)
	return text
}

// TestTheSamplesOfTheWidgetsDocumentationSignTokens runs the server samples of docs/widget.md in
// each language and checks that the service accepts their tokens.
func TestTheSamplesOfTheWidgetsDocumentationSignTokens(t *testing.T) {
	tier.Slow(t, "compiles the sample in Go")
	tier.Needs(t, "node", "python3")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	p.must(http.MethodPut, "/v1/widget/origins", map[string]any{"origins": []string{"https://app.example.com"}})
	_, secret := p.send(http.MethodPost, "/v1/widget/secrets", nil)
	_, me := p.send(http.MethodGet, "/v1/me", nil)
	organization := me["organization"].(map[string]any)["id"].(string)
	runs := map[string]struct {
		file    string
		command []string
	}{"javascript": {"sample.mjs", []string{"node"}}, "go": {"main.go", []string{"go", "run"}}, "python": {"sample.py", []string{"python3"}}}
	ran := 0
	for _, s := range samples(t, filepath.Join(repository, "docs", "widget.md")) {
		run, ok := runs[s.language]
		if !ok {
			continue
		}
		ran++
		t.Run(s.language, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), run.file)
			require.NoError(t, os.WriteFile(file, []byte(s.code), 0o600))
			cmd := exec.CommandContext(t.Context(), run.command[0], append(run.command[1:], file)...)
			cmd.Dir = repository // The sample in Go uses its modules.
			cmd.Env = append(cleanEnviron(), "WIDGET_SECRET_ID="+secret["id"].(string), "WIDGET_SECRET="+secret["secret"].(string), "ORGANIZATION_ID="+organization)
			token, err := cmd.Output()
			require.NoError(t, err)
			body := `{"token":"` + strings.TrimSpace(string(token)) + `"}`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/widget/"+organization+"/identify", strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Origin", "https://app.example.com")
			r.Header.Set("Content-Type", "application/json")
			answer, err := p.client.Do(r)
			require.NoError(t, err)
			defer func() { _ = answer.Body.Close() }()
			require.Equal(t, http.StatusNoContent, answer.StatusCode)
		})
	}
	require.Equal(t, len(runs), ran)
	known := p.first("/v1/contacts?externalUserId=acct-7")
	require.Equal(t, []any{"ada@example.com", "identify"}, []any{known["email"], known["source"]})
}
