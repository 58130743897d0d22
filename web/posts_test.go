package web_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func regexpHas(text, pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) }

func logo(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 16, 16))))
	return file.Bytes()
}

func TestAPublicPost(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"shows its text, from Markdown or from its document": postTexts,
		"shows comments as threads, with members' names":     commentThreads,
		"shows comments page by page":                        commentPages,
		"shows nothing personal but names of members":        nothingPersonal,
		"that was merged leads to the one that stays":        mergedPost,
	})
}

func TestAPublicChangelog(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"shows the published entries":                 changelogPage,
		"links posts of its own board that are there": changelogLinks,
		"is read page by page":                        changelogPages,
		"has a feed":                                  changelogFeed,
	})
}

func postTexts(t *testing.T, n *tenant) {
	n.public(t)
	n.ID(t, n.board+"/posts", object{"title": "Markdown", "body": object{
		"text": "**Bold**, a [link](https://example.com/a?b=1&c=2) and <b>no HTML</b>\n\n- one\n- two",
	}})
	page := n.read(t, n.at+"/markdown")
	require.Contains(t, page.body, `<p><strong>Bold</strong>, a <a href="https://example.com/a?b=1&amp;c=2" rel="nofollow noreferrer">link</a>`)
	require.Contains(t, page.body, "&lt;b&gt;no HTML&lt;/b&gt;")
	require.Regexp(t, `<ul>\s*<li>one</li>\s*<li>two</li>\s*</ul>`, page.body)
	n.ID(t, n.board+"/posts", object{"title": "Document", "body": object{"text": "plain", "json": object{
		"type": "doc", "content": []any{object{"type": "paragraph", "content": []any{
			object{"type": "text", "text": "From <the> editor", "marks": []any{object{"type": "italic"}}},
		}}},
	}}})
	page = n.read(t, n.at+"/document")
	require.Contains(t, page.body, "<p><em>From &lt;the&gt; editor</em></p>")
	require.NotContains(t, page.text(t), "plain")
}

func commentThreads(t *testing.T, n *tenant) {
	n.public(t)
	post := "/v1/posts/" + n.post(t, "Dark mode", nil)
	say := func(text string, parent any) string {
		return n.ID(t, post+"/comments", object{"body": object{"text": text}, "parentId": parent})
	}
	first := say("First", nil)
	say("Second", nil)
	say("Answer to the first", first)
	gone := say("Gone", nil)
	n.Make(t, http.MethodDelete, "/v1/comments/"+gone, nil)
	page := n.read(t, n.at+"/dark-mode")
	text := page.text(t)
	require.Regexp(t, `First.*Answer to the first.*Second.*This comment was deleted\.`, text)
	require.Equal(t, 3, strings.Count(text, "Olive Owner"))
	require.NotContains(t, text, "Gone")
	require.Regexp(t, `<time datetime="20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ">\w+ \d+, 20\d\d, \d\d:\d\d UTC</time>`, page.body)
}

func commentPages(t *testing.T, n *tenant) {
	n.public(t)
	post := "/v1/posts/" + n.post(t, "Dark mode", nil)
	for i := range 30 {
		n.ID(t, post+"/comments", object{"body": object{"text": fmt.Sprintf("Remark %02d.", i)}})
	}
	first := n.read(t, n.at+"/dark-mode")
	second := n.read(t, first.link("Next page"))
	for i := range 30 {
		text := fmt.Sprintf("Remark %02d.", i)
		require.Equal(t, i < 25, strings.Contains(first.body, text), text)
		require.Equal(t, i >= 25, strings.Contains(second.body, text), text)
	}
	require.Equal(t, n.at+"/dark-mode", second.link("First page"))
	require.Empty(t, second.link("Next page"))
}

func nothingPersonal(t *testing.T, n *tenant) {
	n.public(t)
	contact := n.ID(t, "/v1/contacts", object{"externalUserId": "acct-77", "email": "ada@private.example", "name": "Ada Private"})
	post := n.post(t, "Dark mode", object{"contactId": contact, "status": "planned"})
	leaver := n.ID(t, "/v1/members", object{"email": "kim@private.example", "name": "Kim Gone"})
	key := n.NewKeyOf(t, object{"name": "Kim's", "scope": "read:write", "memberId": leaver})["key"].(string)
	a := n.Do(t, http.MethodPost, "/v1/posts/"+post+"/comments", object{"body": object{"text": "Bye"}}, "Authorization", "Bearer "+key)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	n.Make(t, http.MethodDelete, "/v1/members/"+leaver, nil)
	n.ID(t, "/v1/posts/"+post+"/comments", object{"body": object{"text": "As a customer"}, "contactId": contact})
	n.ID(t, n.board+"/changelog", object{"title": "News", "publishedAt": apptest.LongPast})
	require.Regexp(t, `Former member.*Bye.*A customer.*As a customer`, n.read(t, n.at+"/dark-mode").text(t))
	for _, path := range []string{
		n.home, n.at, n.at + "/dark-mode", n.at + "/-/roadmap", n.at + "/-/changelog", n.at + "/-/changelog.atom", n.at + "/-/sitemap.xml",
	} {
		body := n.read(t, path).body
		for _, personal := range []string{"private.example", "owner@example.com", "Ada", "Kim", "acct-77", contact, "usr_", "ctc_", "vot_"} {
			require.NotContains(t, body, personal, path)
		}
	}
}

func mergedPost(t *testing.T, n *tenant) {
	n.public(t)
	stays, source := n.post(t, "Dark mode", nil), n.post(t, "Night mode", nil)
	n.Make(t, http.MethodPost, "/v1/posts/"+stays+"/merge", object{"sourceIds": []string{source}})
	page := n.read(t, n.at+"/night-mode")
	require.Contains(t, page.text(t), "This was merged into another post:")
	require.Equal(t, n.at+"/dark-mode", page.link("Dark mode"))
}

func (n *tenant) entry(t *testing.T, title string, at any) string {
	t.Helper()
	return n.ID(t, n.board+"/changelog", object{"title": title, "publishedAt": at, "body": object{"text": "About *" + title + "*"}})
}

func changelogPage(t *testing.T, n *tenant) {
	n.public(t)
	n.entry(t, "Newer", apptest.LessPast)
	n.entry(t, "Older", apptest.LongPast)
	n.entry(t, "A draft", nil)
	n.entry(t, "To come", apptest.FarAway)
	for _, path := range []string{"/-/changelog", "/-/changelog.atom"} {
		text := n.read(t, n.at+path).body
		require.Less(t, strings.Index(text, "Newer"), strings.Index(text, "Older"), path)
		require.NotContains(t, text, "A draft")
		require.NotContains(t, text, "To come")
	}
	page := n.read(t, n.read(t, n.at+"/-/changelog").link("Older"))
	require.Contains(t, page.body, "<p>About <em>Older</em></p>")
	require.Contains(t, page.body, `<time datetime="2020-05-17T10:11:12Z">May 17, 2020, 10:11 UTC</time>`)
	n.missing(t, n.at+"/-/changelog/a-draft")
	n.missing(t, n.at+"/-/changelog/to-come")
}

func changelogLinks(t *testing.T, n *tenant) {
	n.public(t)
	inner := n.ID(t, "/v1/boards", object{"name": "Inner"})
	secret := n.ID(t, "/v1/boards/"+inner+"/posts", object{"title": "Secret plan"})
	gone, there := n.post(t, "Gone", nil), n.post(t, "Dark mode", nil)
	entry := n.entry(t, "Done", apptest.LongPast)
	n.Make(t, http.MethodPut, "/v1/changelog/"+entry+"/linked-posts", object{"postIds": []string{secret, gone, there}})
	n.Make(t, http.MethodDelete, "/v1/posts/"+gone, nil)
	page := n.read(t, n.at+"/-/changelog")
	require.Equal(t, n.at+"/dark-mode", page.link("Dark mode"))
	require.NotContains(t, page.body, "Secret plan")
	require.Empty(t, page.link("Gone"))
}

func changelogPages(t *testing.T, n *tenant) {
	n.public(t)
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 25 {
		n.entry(t, fmt.Sprintf("Release %02d", i), at.Add(time.Duration(i/2)*time.Hour).Format(time.RFC3339))
	}
	heading := regexp.MustCompile(`<h2><a href="[^"]*">(Release \d\d)</a></h2>`)
	var all []string
	for path := n.at + "/-/changelog"; path != ""; {
		page := n.read(t, path)
		for _, m := range heading.FindAllStringSubmatch(page.body, -1) {
			all = append(all, m[1])
		}
		path = page.link("Next page")
	}
	require.Len(t, all, 25)
	for i, title := range all {
		require.Equal(t, fmt.Sprintf("Release %02d", 24-i), title)
	}
}

func changelogFeed(t *testing.T, n *tenant) {
	n.public(t)
	n.entry(t, "Fish & <chips>", apptest.LongPast)
	answer := n.read(t, n.at+"/-/changelog.atom")
	require.Equal(t, "application/atom+xml; charset=utf-8", answer.Header.Get("Content-Type"))
	var feed struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Author  string `xml:"author>name"`
		Links   []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Entries []struct {
			ID        string `xml:"id"`
			Title     string `xml:"title"`
			Published string `xml:"published"`
			Updated   string `xml:"updated"`
			Link      struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
			Content string `xml:"content"`
		} `xml:"entry"`
	}
	decodeXML(t, answer.body, &feed)
	require.Equal(t, "Acme", feed.Author)
	require.Equal(t, n.App.URL+n.at+"/-/changelog.atom", feed.Links[0].Href)
	require.Len(t, feed.Entries, 1)
	e := feed.Entries[0]
	require.Equal(t, "Fish & <chips>", e.Title)
	require.Equal(t, apptest.LongPast, e.Published)
	require.Equal(t, n.App.URL+n.at+"/-/changelog/fish-and-chips", e.Link.Href)
	require.Contains(t, e.Content, "<p>About <em>Fish &amp; &lt;chips&gt;</em></p>")
	require.Regexp(t, `^urn:uuid:[0-9a-f-]{36}$`, e.ID)
	require.NotEqual(t, e.ID, feed.ID)
	require.Equal(t, feed.Updated, e.Updated)
	require.Contains(t, n.read(t, n.at).body, `rel="alternate" type="application/atom+xml"`)
}
