package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

const (
	product   = "https://app.example.com"
	elsewhere = "https://elsewhere.example.com"
)

func TestTheWidget(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"has pages with the data of the public board":                   framePages,
		"may be shown by pages of the origins that were allowed, alone": frameAncestors,
		"explains how to allow an origin when there is none":            frameWithoutOrigins,
		"hides private boards and hidden changelogs":                    framePrivate,
		"has a script that others may include, and nothing of a cookie": widgetScript,
		"sends its settings to the script, on pages of allowed origins": widgetSettings,
		"dots the script's changelog by its latest entry":               widgetNewest,
		"identifies the visitor of a page of an allowed origin":         identifies,
		"answers preflight requests before identify":                    preflight,
		"refuses tokens from elsewhere, and in other forms":             identifyRefused,
		"doesn't disclose which organizations exist":                    identifyUnknown,
		"takes so many tokens of an address":                            identifyLimited,
		"tells a browser nothing of the organization's plan":            identifyCapped,
	})
}

// widget makes a public board and lets pages of the product embed its widget.
func (n *tenant) widget(t *testing.T) *tenant {
	t.Helper()
	n.public(t)
	n.allow(t)
	return n
}

// allow lets pages of the product embed the widget.
func (n *tenant) allow(t *testing.T) {
	t.Helper()
	n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{product, "http://localhost:3000"}})
}

// inFrame is the path of the board in the widget.
func (n *tenant) inFrame() string { return "/w/" + n.slug + "/ideas" }

func framePages(t *testing.T, n *tenant) {
	n.widget(t)
	n.post(t, "Light mode", nil)
	post := n.post(t, "Dark <b>mode</b>", object{"status": "planned", "body": object{"text": "My *eyes*"}})
	n.Make(t, http.MethodPost, "/v1/posts/"+post+"/votes", nil)
	n.Comment(t, "/v1/posts/"+post, "")
	entry := n.ID(t, n.board+"/changelog", object{"title": "It is dark", "publishedAt": apptest.LongPast})
	n.Make(t, http.MethodPut, "/v1/changelog/"+entry+"/linked-posts", object{"postIds": []string{post}})
	list := n.read(t, n.inFrame())
	for _, wanted := range []string{"Dark <b>mode</b>", "1 vote", "1 comment", "Planned", "Light mode"} {
		require.Contains(t, list.text(t), wanted)
	}
	require.NotContains(t, list.body, "<b>mode")
	require.Equal(t, n.inFrame()+"/-/changelog", list.link("Changelog"))
	found := n.read(t, n.inFrame()+"?q=light")
	require.Contains(t, found.text(t), "Light mode")
	require.NotContains(t, found.text(t), "Dark")
	one := n.read(t, n.inFrame()+"/dark-b-mode-b")
	require.Contains(t, one.body, "<em>eyes</em>")
	require.Contains(t, one.text(t), "Comments")
	require.Equal(t, n.at+"/dark-b-mode-b", one.link("Open the whole board in a new window"))
	news := n.read(t, n.inFrame()+"/-/changelog")
	require.Contains(t, news.text(t), "It is dark")
	require.Equal(t, n.inFrame()+"/dark-b-mode-b", news.link("Dark <b>mode</b>"))
	require.Contains(t, n.read(t, n.inFrame(), "Accept-Language", "de").text(t), "Beiträge durchsuchen")
	for _, page := range []answered{list, found, one, news} {
		require.NotContains(t, page.body, n.Organization.ID.String())
		require.Contains(t, page.body, `name="robots" content="noindex`)
		require.Empty(t, page.Header.Values("Set-Cookie"))
		require.NotEmpty(t, page.Header.Get("ETag"))
	}
}

// ancestors returns the origins that may frame a page.
func (a answered) ancestors() string {
	return regexp.MustCompile(`frame-ancestors ([^;]*)`).FindStringSubmatch(a.Header.Get("Content-Security-Policy"))[1]
}

func frameAncestors(t *testing.T, n *tenant) {
	n.widget(t)
	n.post(t, "Dark mode", nil)
	for _, path := range []string{"", "/dark-mode", "/-/changelog"} {
		page := n.read(t, n.inFrame()+path)
		require.Equal(t, product+" http://localhost:3000", page.ancestors(), path)
		require.Empty(t, page.Header.Values("X-Frame-Options"))
		require.Contains(t, page.Header.Get("Content-Security-Policy"), "script-src 'self'")
		require.Contains(t, page.Header.Get("Content-Security-Policy"), "trusted-types 'none'")
		require.Equal(t, "cross-origin", page.Header.Get("Cross-Origin-Resource-Policy"))
		require.Contains(t, page.body, `data-origins="`+product+` http://localhost:3000 "`)
		require.Equal(t, "'none'", n.read(t, n.at+path).ancestors(), "the board itself is framed by nobody")
	}
	n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{elsewhere}})
	require.Eventually(t, func() bool { return n.read(t, n.inFrame()).ancestors() == elsewhere }, testkit.Wait, testkit.Wait/1000)
}

func frameWithoutOrigins(t *testing.T, n *tenant) {
	n.public(t)
	page := n.read(t, n.inFrame())
	require.Equal(t, "'none'", page.ancestors())
	require.Contains(t, page.text(t), "PUT /v1/widget/origins")
	require.Equal(t, http.StatusForbidden, n.ask(t, http.MethodGet, "/widget/"+n.slug+"/ideas", "Origin", product).StatusCode)
}

func framePrivate(t *testing.T, n *tenant) {
	n.widget(t)
	n.ID(t, "/v1/boards", object{"name": "Inner"})
	n.Patch(t, n.board, object{"showChangelog": false})
	for _, path := range []string{"/w/" + n.slug, "/w/" + n.slug + "/inner", "/w/nobody/ideas", "/w/", n.inFrame() + "/-/changelog", n.inFrame() + "/nothing", "/w/" + n.slug + "/inner/-/changelog"} {
		gone := n.missing(t, path)
		require.Contains(t, gone.body, "The page doesn&#39;t exist, or isn&#39;t public.", path)
		require.NotContains(t, gone.body, n.slug, path)
	}
	for _, path := range []string{"/widget/" + n.slug + "/inner", "/widget/nobody/ideas", "/widget/x"} {
		require.Equal(t, http.StatusNotFound, n.ask(t, http.MethodGet, path, "Origin", product).StatusCode, path)
	}
}

func widgetScript(t *testing.T, n *tenant) {
	script := n.read(t, "/widget.js")
	require.Equal(t, "text/javascript; charset=utf-8", script.Header.Get("Content-Type"))
	require.Equal(t, "cross-origin", script.Header.Get("Cross-Origin-Resource-Policy"))
	require.Equal(t, "*", script.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, script.Header.Get("Cache-Control"), "max-age=300")
	require.Empty(t, script.Header.Values("Set-Cookie"))
	require.Equal(t, http.StatusNotModified, n.ask(t, http.MethodGet, "/widget.js", "If-None-Match", script.Header.Get("ETag")).StatusCode)
	for _, sink := range []string{"document.cookie", "innerHTML", "eval(", "insertAdjacentHTML", "document.write", "sessionStorage"} {
		require.NotContains(t, script.body, sink)
	}
}

func TestTheWidgetsScriptIsUnder15KBGzipped(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("static", "widget.js"))
	require.NoError(t, err)
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, err = w.Write(source)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Less(t, small.Len(), 15_000)
}

// settings returns the configuration of the script.
func (n *tenant) settings(t *testing.T) object {
	t.Helper()
	a := n.read(t, "/widget/"+n.slug+"/ideas", "Origin", product)
	var told object
	require.NoError(t, json.Unmarshal([]byte(a.body), &told))
	return told
}

func widgetSettings(t *testing.T, n *tenant) {
	n.widget(t)
	color := "#ffee00"
	n.operate(t, access.OrganizationPatch{Color: &color})
	path := "/widget/" + n.slug + "/ideas"
	told := n.settings(t)
	require.Equal(t, "Feedback", told["button"])
	require.Equal(t, "Feedback to "+n.Organization.Name, told["title"])
	require.NotEqual(t, color, told["light"].(object)["accent"], "it can't be read on white")
	require.Equal(t, color, told["dark"].(object)["accent"])
	require.Contains(t, n.read(t, path, "Origin", product, "Accept-Language", "de").body, "Schließen")
	for origin, allowed := range map[string]bool{
		product: true, "http://localhost:3000": true, elsewhere: false, "null": false, product + ".evil.example": false, product + ":8443": false,
	} {
		a := n.ask(t, http.MethodGet, path, "Origin", origin)
		require.Equal(t, allowed, a.StatusCode == http.StatusOK, origin)
		require.Contains(t, a.Header.Values("Vary"), "Origin", origin)
		if allowed {
			require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"))
			continue
		}
		require.Equal(t, http.StatusForbidden, a.StatusCode)
		require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, a.body, "origin_not_allowed")
	}
	require.Empty(t, n.read(t, path).Header.Get("Access-Control-Allow-Origin"))
}

func widgetNewest(t *testing.T, n *tenant) {
	n.widget(t)
	require.Equal(t, "", n.settings(t)["newest"])
	n.ID(t, n.board+"/changelog", object{"title": "It is dark", "publishedAt": "2026-03-12T10:41:07.25Z"})
	require.Eventually(t, func() bool { return n.settings(t)["newest"] == "2026-03-12T10:41:07.250000Z" }, testkit.Wait, testkit.Wait/1000)
	require.Contains(t, n.read(t, n.inFrame()+"/-/changelog").body, `data-newest="2026-03-12T10:41:07.250000Z"`)
	n.Patch(t, n.board, object{"showChangelog": false})
	require.Eventually(t, func() bool { return n.settings(t)["newest"] == "" && n.settings(t)["changelog"] == false }, testkit.Wait, testkit.Wait/1000)
}

// token is a token that the organization's server signs.
func (n *tenant) token(t *testing.T, subject string, more object) string {
	t.Helper()
	claims := jwt.MapClaims{
		"sub": subject, "iss": n.Organization.ID.String(), "aud": "widget", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range more {
		claims[name] = value
	}
	made := n.Make(t, http.MethodPost, "/v1/widget/secrets", nil)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	token.Header["kid"] = made["id"]
	text, err := token.SignedString([]byte(made["secret"].(string)))
	require.NoError(t, err)
	return text
}

// identify sends a body as a page does.
func (n *tenant) identify(t *testing.T, body string, header ...string) answered {
	t.Helper()
	headers := append([]string{"Origin", product, "Content-Type", "application/json", "Sec-Fetch-Site", "cross-site"}, header...)
	return n.sent(t, http.MethodPost, "/widget/"+n.slug+"/identify", body, headers...)
}

func given(token string) string { return `{"token":"` + token + `"}` }

func identifies(t *testing.T, n *tenant) {
	n.widget(t)
	token := n.token(t, "acct-7", object{"email": "ada@example.com", "name": "Ada"})
	for range 2 { // a repeated token is harmless
		a := n.identify(t, given(token))
		require.Equal(t, http.StatusNoContent, a.StatusCode, a.body)
		require.Empty(t, a.body, "nothing that the organization knows of the contact")
		require.Equal(t, product, a.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		require.Contains(t, a.Header.Values("Vary"), "Origin")
		require.Empty(t, a.Header.Values("Set-Cookie"))
		require.Empty(t, a.Header.Get("Access-Control-Allow-Credentials"))
	}
	known := n.Do(t, http.MethodGet, "/v1/contacts?externalUserId=acct-7", nil).Body["data"].([]any)
	require.Len(t, known, 1)
	require.Equal(t, "identify", known[0].(object)["source"])
	require.Equal(t, "sdk_identify", known[0].(object)["consentBasis"])
	require.Equal(t, "ada@example.com", known[0].(object)["email"])
}

func preflight(t *testing.T, n *tenant) {
	n.widget(t)
	ask := func(origin string) answered {
		return n.ask(t, http.MethodOptions, "/widget/"+n.slug+"/identify", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
	}
	allowed := ask(product)
	require.Equal(t, http.StatusNoContent, allowed.StatusCode)
	require.Equal(t, product, allowed.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "POST", allowed.Header.Get("Access-Control-Allow-Methods"))
	require.Equal(t, "Content-Type", allowed.Header.Get("Access-Control-Allow-Headers"))
	for _, origin := range []string{elsewhere, "null", "", "https://APP.example.com", product + "/"} {
		refused := ask(origin)
		require.Equal(t, http.StatusForbidden, refused.StatusCode, origin)
		require.Empty(t, refused.Header.Get("Access-Control-Allow-Origin"), origin)
	}
}

func identifyRefused(t *testing.T, n *tenant) {
	n.widget(t)
	token := n.token(t, "u-1", nil)
	unchanged := n.Watch(t)
	for what, refused := range map[string]struct {
		status int
		answered
	}{
		"from elsewhere":        {http.StatusForbidden, n.identify(t, given(token), "Origin", elsewhere)},
		"from no page":          {http.StatusForbidden, n.identify(t, given(token), "Origin", "")},
		"as a form":             {http.StatusUnsupportedMediaType, n.identify(t, given(token), "Content-Type", "text/plain")},
		"without a body":        {http.StatusUnprocessableEntity, n.identify(t, "")},
		"without a token":       {http.StatusUnprocessableEntity, n.identify(t, `{"token":""}`)},
		"with a number":         {http.StatusUnprocessableEntity, n.identify(t, `{"token":7}`)},
		"with a bad token":      {http.StatusUnauthorized, n.identify(t, given("a.b.c"))},
		"with a damaged one":    {http.StatusUnauthorized, n.identify(t, given(token[:len(token)-4]+"AAAA"))},
		"with more than 8 KiB":  {http.StatusRequestEntityTooLarge, n.identify(t, given(strings.Repeat("x", 8<<10)))},
		"with an API key alone": {http.StatusUnprocessableEntity, n.identify(t, "{}", "Authorization", "Bearer "+n.Key)},
	} {
		require.Equal(t, refused.status, refused.StatusCode, "%s: %s", what, refused.body)
		require.Contains(t, refused.body, `"error":{"code":"ERR_`, what)
		require.NotContains(t, refused.body, token, what)
		readable := refused.Header.Get("Access-Control-Allow-Origin") == product
		require.Equal(t, refused.status != http.StatusForbidden, readable, what)
	}
	unchanged(t)
	require.Equal(t, http.StatusMethodNotAllowed, n.ask(t, http.MethodPut, "/widget/"+n.slug+"/identify", "Origin", product).StatusCode)
}

func identifyUnknown(t *testing.T, n *tenant) {
	n.widget(t)
	there := n.identify(t, given("x"), "Origin", elsewhere)
	for _, name := range []string{"nobody", "org_nothing", "%00", n.App.Tenant(t).Organization.ID.String()} {
		gone := n.sent(t, http.MethodPost, "/widget/"+name+"/identify", given("x"), "Origin", elsewhere, "Content-Type", "application/json")
		require.Equal(t, there.StatusCode, gone.StatusCode, name)
		require.Equal(t, there.body, gone.body, name)
	}
}

func identifyLimited(t *testing.T, _ *tenant) {
	own := newTenant(published.Start(t).Tenant(t)).widget(t) // it trusts a proxy
	from := func(address string) answered { return own.identify(t, given("a.b.c"), "X-Forwarded-For", address) }
	var statuses []int
	for range 125 {
		statuses = append(statuses, from(own.network).StatusCode)
	}
	require.Equal(t, http.StatusUnauthorized, statuses[0])
	limited := from(own.network)
	require.Equal(t, http.StatusTooManyRequests, limited.StatusCode)
	require.NotEmpty(t, limited.Header.Get("Retry-After"))
	require.GreaterOrEqual(t, slices.Index(statuses, http.StatusTooManyRequests), 120)
	require.Equal(t, http.StatusUnauthorized, from("203.0.113.8").StatusCode, "another address isn't")
}

func identifyCapped(t *testing.T, _ *tenant) {
	own := newTenant(published.Start(t).TenantOn(t, "free")).widget(t)
	require.Equal(t, http.StatusNoContent, own.identify(t, given(own.token(t, "u-1", nil))).StatusCode)
	full := own.identify(t, given(own.token(t, "u-2", nil)))
	require.Equal(t, http.StatusPaymentRequired, full.StatusCode)
	require.JSONEq(t, `{"error":{"code":"ERR_PLAN_LIMIT","message":"The organization has no room for further contacts."}}`, full.body)
}

func TestATokenOfTheWidgetIsInNoLog(t *testing.T) {
	t.Parallel()
	logs := testkit.NewLogs()
	n := newTenant(apptest.Start(t, apptest.Options{Logs: logs.Logger()}).Tenant(t)).widget(t)
	token := n.token(t, "u-1", object{"email": "ada@example.com"})
	damaged := token[:len(token)-4] + "AAAA"
	require.Equal(t, http.StatusNoContent, n.identify(t, given(token)).StatusCode)
	require.Equal(t, http.StatusUnauthorized, n.identify(t, given(damaged)).StatusCode)
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), `"status":401`) }, testkit.Wait, testkit.Wait/1000)
	for part := range strings.SplitSeq(token, ".") {
		require.NotContains(t, logs.String(), part)
	}
	require.NotContains(t, logs.String(), "ada@example.com")
}
