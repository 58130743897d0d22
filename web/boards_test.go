package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAPublicBoard(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is listed on the page of its organization, by slug and by id":      workspacePage,
		"shows posts with status, votes, comments and tags":                 postsShown,
		"is searched, filtered and sorted by its form":                      postsFound,
		"is read page by page, each post once":                              postsPaged,
		"takes any query in an address":                                     anyQuery,
		"that is private is like one that isn't there":                      privateBoard,
		"doesn't show deleted posts or posts of other organizations":        goneAndForeign,
		"disappears within a second when it becomes private":                becomesPrivate,
		"has a roadmap of planned, started and shipped posts":               roadmapPage,
		"shows neither a post hidden from the roadmap nor a hidden roadmap": hiddenRoadmap,
		"has its organization's colour and logo":                            colorAndLogo,
	})
}

func workspacePage(t *testing.T, n *tenant) {
	n.public(t)
	n.Make(t, http.MethodPost, "/v1/boards", object{"name": "Inner thoughts"})
	for _, home := range []string{n.home, "/b/" + n.Organization.ID.String()} {
		page := n.read(t, home)
		require.Contains(t, page.text(t), "What shall we build?")
		require.Equal(t, n.at, page.link("Ideas"))
		require.NotContains(t, page.body, "Inner thoughts")
	}
	slash := n.ask(t, http.MethodGet, n.home+"/")
	require.Equal(t, http.StatusMovedPermanently, slash.StatusCode)
	require.Equal(t, n.home, slash.Header.Get("Location"))
}

func postsShown(t *testing.T, n *tenant) {
	n.public(t)
	tag := n.ID(t, n.board+"/tags", object{"name": "Mobile & <b>", "color": "#2563eb"})
	post := n.ID(t, n.board+"/posts", object{
		"title": `Dark "mode" <script>alert(1)</script>`, "body": object{"text": "My eyes\nhurt <img src=x>"}, "tagIds": []string{tag},
	})
	n.Patch(t, "/v1/posts/"+post, object{"status": "in_progress"})
	n.Make(t, http.MethodPost, "/v1/posts/"+post+"/votes", nil)
	n.Comment(t, "/v1/posts/"+post, "")
	page := n.read(t, n.at)
	text := page.text(t)
	for _, wanted := range []string{`Dark "mode" <script>alert(1)</script>`, "My eyes hurt <img src=x>", "In progress", "1 vote", "1 comment", "Mobile & <b>"} {
		require.Contains(t, text, wanted)
	}
	require.Contains(t, page.body, `fill="#2563eb"`)
	require.NotContains(t, page.body, "<script>")
	require.NotContains(t, page.body, "<img src=x")
}

func postsFound(t *testing.T, n *tenant) {
	n.public(t)
	tag := n.ID(t, n.board+"/tags", object{"name": "Mobile"})
	n.post(t, "Dark mode", object{"status": "planned"})
	voted := n.post(t, "Export as PDF", object{"tagIds": []string{tag}})
	n.post(t, "Export as CSV", object{"status": "shipped"})
	n.Make(t, http.MethodPost, "/v1/posts/"+voted+"/votes", nil)
	for query, wanted := range map[string][]string{
		"":                                    {"Export as CSV", "Export as PDF", "Dark mode"},
		"q=export":                            {"Export as CSV", "Export as PDF"},
		"q=export&sort=votes":                 {"Export as PDF", "Export as CSV"},
		"sort=votes":                          {"Export as PDF", "Export as CSV", "Dark mode"},
		"sort=active":                         {"Export as PDF", "Export as CSV", "Dark mode"},
		"status=planned":                      {"Dark mode"},
		"status=planned&status=shipped":       {"Export as CSV", "Dark mode"},
		"tag=" + tag:                          {"Export as PDF"},
		"q=export&status=shipped&sort=newest": {"Export as CSV"},
		"q=nothing-like-it":                   nil,
	} {
		page := n.read(t, n.at+"?"+query)
		require.Equal(t, wanted, page.titles(), query)
		require.Equal(t, query != "", regexpHas(page.body, `name="robots" content="noindex`), query)
	}
	page := n.read(t, n.at+"?q=export&status=shipped&sort=newest&tag="+tag)
	for _, marked := range []string{`value="export"`, `value="shipped" checked`, `value="newest" selected`, `value="` + tag + `" checked`} {
		require.Contains(t, page.body, marked, "the form says what is shown")
	}
	require.Equal(t, n.at, page.link("Show all posts"))
	for _, query := range []string{"", "?q=export"} {
		require.Contains(t, n.read(t, n.at+query).body, `<option value="" selected>`, "words that are looked for next bring their own order")
	}
}

func postsPaged(t *testing.T, n *tenant) {
	n.public(t)
	var wanted []string
	for i := range 45 {
		title := fmt.Sprintf("Wish %02d", i)
		n.post(t, title, nil)
		wanted = append([]string{title}, wanted...)
	}
	for _, query := range []string{"", "?sort=votes", "?q=wish", "?sort=active&status=open&status=planned"} {
		var all []string
		for at := n.at + query; at != ""; {
			page := n.read(t, at)
			require.LessOrEqual(t, len(page.titles()), 20)
			if len(all) > 0 {
				first := n.read(t, page.link("First page"))
				require.Equal(t, all[:20], first.titles())
			}
			all = append(all, page.titles()...)
			at = page.link("Next page")
		}
		require.Equal(t, wanted, all, query)
	}
}

func anyQuery(t *testing.T, n *tenant) {
	n.public(t)
	n.post(t, "Dark mode", nil)
	for _, query := range []string{
		"status=none", "sort=random", "sort=relevance", "tag=tag_x", "tag=%00", "q=%00", "q=%FF%FE", "q=" + url.QueryEscape(" "), "x=1", "%",
		"q=&status=&sort=&tag=", "status=open%00",
	} {
		page := n.read(t, n.at+"?"+query)
		require.Equal(t, []string{"Dark mode"}, page.titles(), query)
	}
	long := n.read(t, n.at+"?q="+url.QueryEscape(string(slices.Repeat([]rune{'ä'}, 1000))))
	require.Empty(t, long.titles())
	for _, query := range []string{"cursor=x", "cursor=%00", "cursor=AAAA"} {
		n.missing(t, n.at+"?"+query)
	}
}

// missing requests a page that does not exist, and returns the answer.
func (n *tenant) missing(t *testing.T, path string) answered {
	t.Helper()
	a := n.ask(t, http.MethodGet, path)
	require.Equal(t, http.StatusNotFound, a.StatusCode, "%s: %s", path, a.body)
	require.Equal(t, "noindex", a.Header.Get("X-Robots-Tag"))
	a.Header.Del("X-Request-Id")
	a.Header.Del("Date")
	return a
}

func privateBoard(t *testing.T, n *tenant) {
	n.public(t)
	unknown := n.missing(t, "/b/nobody-at-all/ideas")
	same := func(path string) {
		t.Helper()
		a := n.missing(t, path)
		require.Equal(t, unknown.body, a.body, path)
		require.Equal(t, unknown.Header, a.Header, path)
	}
	inner := n.ID(t, "/v1/boards", object{"name": "Inner"})
	n.ID(t, "/v1/boards/"+inner+"/posts", object{"title": "Secret plan"})
	n.ID(t, "/v1/boards/"+inner+"/changelog", object{"title": "Secret news", "publishedAt": apptest.LongPast})
	for _, below := range []string{
		"", "/secret-plan", "/secret-plan/image.png", "/-/roadmap", "/-/changelog", "/-/changelog/secret-news", "/-/changelog.atom",
		"/-/image.png", "/-/sitemap.xml",
	} {
		same(n.home + "/inner" + below)
		same(n.home + "/unknown" + below)
		same("/b/nobody-at-all/inner" + below)
	}
	same(n.at + "/unknown")
	same(n.at + "/-/changelog/unknown")
	closed := newTenant(n.App.Tenant(t))
	closed.operate(t, access.OrganizationPatch{Logo: logo(t)})
	for _, below := range []string{"", "/-/logo", "/-/image.png", "/-/sitemap.xml"} {
		same("/b/" + closed.Organization.ID.String() + below)
	}
}

func goneAndForeign(t *testing.T, n *tenant) {
	n.public(t)
	post := n.post(t, "Dark mode", nil)
	n.read(t, n.at+"/dark-mode")
	n.Make(t, http.MethodDelete, "/v1/posts/"+post, nil)
	theirs := n.other(t)
	theirs.post(t, "Their wish", nil)
	n.missing(t, n.at+"/their-wish")
	theirs.read(t, theirs.at+"/their-wish")
	require.Eventually(t, func() bool {
		return n.ask(t, http.MethodGet, n.at+"/dark-mode").StatusCode == http.StatusNotFound
	}, testkit.Wait, testkit.Wait/1000)
	require.NotContains(t, n.read(t, n.at+"/-/sitemap.xml").body, "dark-mode")
	require.Empty(t, n.read(t, n.at).titles())
}

func becomesPrivate(t *testing.T, n *tenant) {
	n.public(t)
	n.read(t, n.at)
	n.Patch(t, n.board, object{"public": false})
	require.Eventually(t, func() bool {
		return n.ask(t, http.MethodGet, n.at).StatusCode == http.StatusNotFound &&
			n.ask(t, http.MethodGet, n.home).StatusCode == http.StatusNotFound
	}, testkit.Wait, testkit.Wait/1000)
}

func roadmapPage(t *testing.T, n *tenant) {
	n.public(t)
	for _, status := range []string{"open", "under_review", "planned", "in_progress", "shipped", "declined"} {
		n.post(t, "A wish that is "+status, object{"status": status})
	}
	n.post(t, "A newer plan", object{"status": "planned"})
	page := n.read(t, n.at+"/-/roadmap")
	require.Equal(t, []string{"A newer plan", "A wish that is planned", "A wish that is in_progress", "A wish that is shipped"}, page.titles())
	require.Equal(t, n.at+"/a-newer-plan", page.link("A newer plan"))
	require.Equal(t, []string{"A newer plan", "A wish that is planned"}, n.read(t, page.link("See all")).titles())
}

func hiddenRoadmap(t *testing.T, n *tenant) {
	n.public(t)
	n.post(t, "In the open", object{"status": "planned"})
	n.post(t, "Under the table", object{"status": "planned", "hideFromRoadmap": true})
	require.Equal(t, []string{"In the open"}, n.read(t, n.at+"/-/roadmap").titles())
	other := "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Quiet", "public": true})
	n.Patch(t, other, object{"showRoadmap": false, "showChangelog": false})
	page := n.read(t, n.home+"/quiet")
	require.Empty(t, page.link("Roadmap")+page.link("Changelog"))
	for _, below := range []string{"/-/roadmap", "/-/changelog", "/-/changelog.atom"} {
		n.missing(t, n.home+"/quiet"+below)
		require.NotContains(t, n.read(t, n.home+"/quiet/-/sitemap.xml").body, below)
	}
}

func colorAndLogo(t *testing.T, n *tenant) {
	n.public(t)
	require.NotContains(t, n.read(t, n.at).body, "/-/colors/")
	n.missing(t, n.home+"/-/logo")
	color := "#0f766e"
	n.operate(t, access.OrganizationPatch{Color: &color, Logo: logo(t)})
	var page answered
	require.Eventually(t, func() bool {
		page = n.read(t, n.at)
		return strings.Contains(page.body, `href="/b/-/colors/0f766e.css"`)
	}, testkit.Wait, testkit.Wait/1000)
	colors := n.read(t, "/b/-/colors/0f766e.css")
	require.Contains(t, colors.body, "--accent: #0f766e")
	require.Contains(t, colors.body, "prefers-color-scheme: dark")
	for _, bad := range []string{"red", "0f766", "0F766E", "0f766e;}", "0f766e.css"} {
		require.Equal(t, http.StatusNotFound, n.ask(t, http.MethodGet, "/b/-/colors/"+bad+".css").StatusCode, bad)
	}
	require.Contains(t, page.body, `<img src="`+n.home+`/-/logo?v=`)
	require.Eventually(t, func() bool {
		got := n.ask(t, http.MethodGet, n.home+"/-/logo")
		return got.StatusCode == http.StatusOK && got.Header.Get("Content-Type") == "image/png" && got.body == string(logo(t))
	}, testkit.Wait, testkit.Wait/1000)
}
