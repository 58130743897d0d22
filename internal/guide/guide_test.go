package guide

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apidocs "earshot/docs/api"
)

func made(t *testing.T, operations ...Operation) *Guide {
	t.Helper()
	g, err := New(operations)
	require.NoError(t, err)
	return g
}

func TestEveryFileOfTheGuideIsAPageOfItsContents(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(apidocs.Pages, "*.md")
	require.NoError(t, err)
	var named []string
	for _, name := range order {
		named = append(named, name+".md")
	}
	require.ElementsMatch(t, files, named)
}

var (
	linked = regexp.MustCompile(` href="([^"]+)"`)
	anchor = regexp.MustCompile(` id="([^"]+)"`)
)

func TestEveryLinkInsideTheGuideLeadsSomewhere(t *testing.T) {
	t.Parallel()
	pages, err := made(t).Pages()
	require.NoError(t, err)
	targets := map[string]bool{Reference: true, Style: true, "/v1/openapi.json": true}
	for at, html := range pages {
		targets[at] = true
		seen := map[string]bool{}
		for _, id := range anchor.FindAllSubmatch(html, -1) {
			require.False(t, seen[string(id[1])], "%s has two %s", at, id[1])
			seen[string(id[1])] = true
			targets[at+"#"+string(id[1])] = true
		}
	}
	for at, html := range pages {
		for _, found := range linked.FindAllSubmatch(html, -1) {
			link := string(found[1])
			if strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "data:") {
				continue
			}
			if strings.HasPrefix(link, "#") {
				link = at + link
			}
			require.True(t, targets[link], "%s links to %s", at, link)
		}
	}
}

func TestPagesNeedNoScriptAndNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	pages, err := made(t).Pages()
	require.NoError(t, err)
	require.Len(t, pages, len(order)+1, "the first one has two addresses")
	require.Equal(t, pages[Root], pages[path.Join(Root, order[0])])
	for at, html := range pages {
		require.NotContains(t, string(html), "<script", at)
		require.NotContains(t, string(html), "style=", at)
		require.NotRegexp(t, `src=|<link[^>]*https?:`, string(html), at)
		require.Contains(t, string(html), `aria-current="page"`, at)
	}
}

func titles(found []result) (all []string) {
	for _, r := range found {
		all = append(all, r.Title)
	}
	return all
}

func TestASearchFindsSectionsThatHaveAllWords(t *testing.T) {
	t.Parallel()
	g := made(t, Operation{ID: "mergePosts", Summary: "Merge posts into this one", Text: "POST /v1/posts/{postId}/merge Their votes move over."})
	found := g.search("conflict ERR_")
	require.Equal(t, "ERR_CONFLICT", found[0].Title)
	require.Equal(t, "/v1/docs/errors#err_conflict", found[0].URL)
	require.Equal(t, "Errors", found[0].Page)

	require.Contains(t, titles(g.search("OpenSSL webrick")), "Ruby", "samples count, too")
	require.Empty(t, g.search("openssl no-such-word"))
	require.Empty(t, g.search(" \t"))

	merge := g.search("merge posts votes")
	require.Equal(t, "Merge posts into this one", merge[0].Title)
	require.Equal(t, "/v1/docs/reference#/operations/mergePosts", merge[0].URL)
}

func TestAResultShowsTheWordWithTheTextAroundIt(t *testing.T) {
	t.Parallel()
	s := newSection("Page", "Title", "/x", strings.Repeat("ä ", 200)+"Needle"+strings.Repeat(" ö", 200))
	r, ok := s.match([]string{"needle"})
	require.True(t, ok)
	require.Equal(t, "Needle", r.Match)
	require.Regexp(t, `^… ä( ä)+ $`, r.Before)
	require.Regexp(t, `^ ö( ö)+ …$`, r.Behind)
	require.Less(t, len(r.Before)+len(r.Behind), 3*around)
}

func TestASearchTermIsShownAsTextAndNeverAsHTML(t *testing.T) {
	t.Parallel()
	g := made(t)
	for _, query := range []string{`"><script>alert(1)</script>`, "\xff\xfe\x00", strings.Repeat("a b ", 500), "İ ſ K", "{{.}}"} {
		html, err := g.Find(query)
		require.NoError(t, err)
		require.NotContains(t, string(html), "<script")
	}
	html, err := g.Find("secret")
	require.NoError(t, err)
	require.Contains(t, string(html), "<mark>secret</mark>")
	html, err = g.Find("no-such-word-anywhere")
	require.NoError(t, err)
	require.Contains(t, string(html), "Nothing has all of these words.")
}
