package web_test

import (
	"bytes"
	"image/png"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"earshot/internal/testkit/apptest"
)

func TestPages(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"have a policy that lets nothing in, and nothing inline":  strictPolicy,
		"set no cookies and are asked for again by their tag":     tagsAndCookies,
		"are in the language of the reader":                       readersLanguage,
		"are whole, with every link leading somewhere":            wholePages,
		"can be shared, with a picture of their own":              previews,
		"are found by search engines, their parts aren't":         searchEngines,
		"refuse requests from other sites":                        crossOrigin,
		"aren't hidden by an address that only looks like theirs": lookAlike,
	})
}

// all returns the path of one page of each kind.
func (n *tenant) all(t *testing.T) []string {
	t.Helper()
	n.public(t)
	n.ID(t, n.board+"/tags", object{"name": "Mobile"})
	post := "/v1/posts/" + n.post(t, "Dark mode", object{"status": "planned"})
	n.Comment(t, post, n.Comment(t, post, ""))
	n.entry(t, "Version 1", apptest.LongPast)
	return []string{n.home, n.at, n.at + "?q=x", n.at + "/dark-mode", n.at + "/-/roadmap", n.at + "/-/changelog", n.at + "/-/changelog/version-1"}
}

// An escaped slash in a name leads to no page. Its answer must not be cached for the page with a
// plain slash.
func lookAlike(t *testing.T, n *tenant) {
	n.public(t)
	n.post(t, "Dark mode", nil)
	require.Equal(t, http.StatusNotFound, n.ask(t, http.MethodGet, n.at+"%2Fdark-mode").StatusCode)
	require.Equal(t, http.StatusOK, n.ask(t, http.MethodGet, n.at+"/dark-mode").StatusCode)
}

func strictPolicy(t *testing.T, n *tenant) {
	for _, path := range append(n.all(t), "/b/nobody/there") {
		page := n.ask(t, http.MethodGet, path)
		policy := page.Header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'", "base-uri 'none'", "frame-ancestors 'none'",
			"form-action 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'",
		} {
			require.Contains(t, policy, part, path)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", page.Header.Get("X-Content-Type-Options"))
		require.NotRegexp(t, `data:|<style|<script(?: type="module")?(?: blocking="render")?>| style=| on[a-z]+=|javascript:`, page.body, path)
		for _, m := range regexp.MustCompile(`(?:src|<link rel="stylesheet" href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
			require.True(t, strings.HasPrefix(m[1], "/b/"), "%s has %s", path, m[1])
		}
	}
}

func tagsAndCookies(t *testing.T, n *tenant) {
	for _, path := range append(n.all(t), n.at+"/-/changelog.atom", n.at+"/-/sitemap.xml", n.home+"/-/sitemap.xml") {
		first := n.read(t, path)
		require.Empty(t, first.Cookies(), path)
		require.Equal(t, "no-cache", first.Header.Get("Cache-Control"))
		require.Contains(t, first.Header.Values("Vary"), "Accept-Language")
		tag := first.Header.Get("ETag")
		for _, have := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			again := n.ask(t, http.MethodGet, path, "If-None-Match", have)
			require.Equal(t, http.StatusNotModified, again.StatusCode, "%s %s", path, have)
			require.Empty(t, again.body)
			require.Equal(t, tag, again.Header.Get("ETag"))
		}
		n.read(t, path, "If-None-Match", `"x"`)
		head := n.ask(t, http.MethodHead, path)
		require.Equal(t, http.StatusOK, head.StatusCode)
		require.EqualValues(t, len(first.body), head.ContentLength)
		require.Empty(t, head.body)
	}
	style := regexp.MustCompile(`/b/-/style\.[0-9a-f]+\.css`).FindString(n.read(t, n.at).body)
	require.Contains(t, n.read(t, style).Header.Get("Cache-Control"), "immutable")
	before := n.read(t, "/b/-/style.0123456789ab.css")
	require.Equal(t, "no-cache", before.Header.Get("Cache-Control"), "another version's name isn't kept for good")
}

func readersLanguage(t *testing.T, n *tenant) {
	n.all(t)
	for header, wanted := range map[string]string{
		"": "en", "de": "de", "de-AT,de;q=0.9,en;q=0.8": "de", "en-US,de;q=0.5": "en", "fr": "en", "*": "en", "fr, de;q=0.1": "de",
		";;;": "en", strings.Repeat("de,", 1000): "en", "gsw": "de",
	} {
		page := n.read(t, n.at+"/dark-mode", "Accept-Language", header)
		require.Equal(t, wanted, page.Header.Get("Content-Language"), header)
		require.Contains(t, page.body, `<html lang="`+wanted+`">`, header)
	}
	german := n.read(t, n.at+"/dark-mode", "Accept-Language", "de").text(t)
	for _, words := range []string{"Geplant", "0 Stimmen", "Kommentare", "Geschrieben am", "Zum Inhalt springen"} {
		require.Contains(t, german, words)
	}
	require.Contains(t, n.read(t, n.at+"/-/changelog", "Accept-Language", "de").text(t), "17. Mai 2020, 10:11 UTC")
	missing := n.ask(t, http.MethodGet, "/b/nobody", "Accept-Language", "de")
	require.Contains(t, missing.body, "Hier ist nichts")
}

// wholePages checks the structure that assistive technology uses.
func wholePages(t *testing.T, n *tenant) {
	for _, path := range n.all(t) {
		page := n.read(t, path)
		require.Equal(t, 1, strings.Count(page.body, "<h1>"), path)
		require.Equal(t, 1, strings.Count(page.body, "<main"), path)
		doc, err := html.Parse(strings.NewReader(page.body))
		require.NoError(t, err)
		ids := map[string]bool{}
		for node := range doc.Descendants() {
			for _, a := range node.Attr {
				switch {
				case a.Key == "id":
					require.False(t, ids[a.Val], "%s has two %s", path, a.Val)
					ids[a.Val] = true
				case a.Key == "href" && strings.HasPrefix(a.Val, "/"), a.Key == "src" && strings.HasPrefix(a.Val, "/"):
					require.Equal(t, http.StatusOK, n.ask(t, http.MethodGet, a.Val).StatusCode, "%s leads to %s", path, a.Val)
				}
			}
		}
		for _, m := range regexp.MustCompile(`(?:for|aria-labelledby)="([^"]*)"|href="#([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
			require.True(t, ids[m[1]+m[2]], "%s names %s", path, m[0])
		}
	}
}

func previews(t *testing.T, n *tenant) {
	paths := n.all(t)
	image := regexp.MustCompile(`property="og:image" content="([^"]*)"`)
	seen := map[string]bool{}
	for _, path := range paths {
		page := n.read(t, path)
		m := image.FindStringSubmatch(page.body)
		require.NotNil(t, m, path)
		at, ok := strings.CutPrefix(m[1], n.App.URL)
		require.True(t, ok, "%s isn't a whole address", m[1])
		answer := n.read(t, at)
		require.Equal(t, "image/png", answer.Header.Get("Content-Type"))
		picture, err := png.Decode(bytes.NewReader([]byte(answer.body)))
		require.NoError(t, err)
		require.Equal(t, "(1200,630)", picture.Bounds().Max.String())
		seen[answer.body] = true
		require.Contains(t, page.body, `property="og:title"`)
	}
	require.Len(t, seen, 3, "of the organization, the board and the post")
}

func searchEngines(t *testing.T, n *tenant) {
	n.all(t)
	for path, canonical := range map[string]string{
		n.home: n.home, "/b/" + n.Organization.ID.String(): n.home, n.at + "?q=dark&sort=votes": n.at, n.at + "/dark-mode": n.at + "/dark-mode",
		n.at + "/-/changelog/version-1": n.at + "/-/changelog/version-1",
	} {
		require.Contains(t, n.read(t, path).body, `<link rel="canonical" href="`+n.App.URL+canonical+`">`, path)
	}
	var index struct {
		Maps []string `xml:"sitemap>loc"`
	}
	decodeXML(t, n.read(t, n.home+"/-/sitemap.xml").body, &index)
	require.Equal(t, []string{n.App.URL + n.at + "/-/sitemap.xml"}, index.Maps)
	var pages struct {
		Pages []string `xml:"url>loc"`
	}
	decodeXML(t, n.read(t, n.at+"/-/sitemap.xml").body, &pages)
	at := n.App.URL + n.at
	require.Equal(t, []string{at, at + "/-/roadmap", at + "/-/changelog", at + "/dark-mode"}, pages.Pages)
	require.Equal(t, "User-agent: *\nAllow: /b/\nDisallow: /\n", n.read(t, "/robots.txt").body)
	behindProxy := n.read(t, n.at, "X-Forwarded-Proto", "https")
	require.Contains(t, behindProxy.body, `href="https://`)
}

func TestLinksLeadToThePublicOriginRegardlessOfTheRequest(t *testing.T) {
	t.Parallel()
	n := newTenant(published.Start(t).Tenant(t)).public(t)
	n.entry(t, "News", apptest.LongPast)
	for _, path := range []string{n.at, n.at + "/-/changelog.atom", n.at + "/-/sitemap.xml"} {
		page := n.read(t, path, "X-Forwarded-Proto", "http")
		require.Contains(t, page.body, mailOrigin+"/b/")
		require.NotContains(t, page.body, n.App.URL)
	}
}

func crossOrigin(t *testing.T, n *tenant) {
	n.all(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		foreign := n.ask(t, method, n.at, "Sec-Fetch-Site", "cross-site")
		require.Equal(t, http.StatusForbidden, foreign.StatusCode)
		foreign = n.ask(t, method, n.at, "Origin", "https://elsewhere.example")
		require.Equal(t, http.StatusForbidden, foreign.StatusCode)
		own := n.ask(t, method, n.at, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusMethodNotAllowed, own.StatusCode)
		require.Equal(t, "GET, HEAD", own.Header.Get("Allow"))
	}
}

func TestPagesAreCountedByTheirKind(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_METRICS_LISTEN=127.0.0.1:0"}})
	n := newTenant(app.Tenant(t)).public(t)
	n.post(t, "Dark mode", nil)
	n.read(t, n.at)
	n.read(t, n.at+"/dark-mode")
	n.missing(t, "/b/nobody")
	answer, err := http.Get("http://" + app.Metrics.Address() + "/metrics")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	metrics, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	for _, operation := range []string{"/b/{workspace}/{board}", "/b/{workspace}/{board}/{post}", "/b/{workspace}"} {
		require.True(t, strings.Contains(string(metrics), `operation="`+operation+`"`), operation)
	}
	require.False(t, strings.Contains(string(metrics), n.slug), "a label never holds what somebody chose")
	require.True(t, regexpHas(string(metrics), `\nearshot_pages_refused_total 0\n`))
}
