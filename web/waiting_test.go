package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestAModeratedTextAppearsOnlyAfterApproval(t *testing.T) {
	t.Parallel()
	apptest.Together(t, published.Start(t), newVisitor, map[string]func(*testing.T, *visitor){
		"as the form, the link's page and the page behind the button say": waitsByMail,
		"as a known visitor reads":                                        waitsOfTheKnown,
		"and is on no page before":                                        waitsOnNoPage,
		"as the pages say in German":                                      waitsInGerman,
		"and is refused by the form while the queue is full":              queueIsFull,
		"if it has a blocked word, which no page names":                   blockedWordWaits,
	})
}

func (v *visitor) moderate(t *testing.T) {
	t.Helper()
	v.Patch(t, v.board, object{"moderated": true})
}

func waitsByMail(t *testing.T, v *visitor) {
	v.moderate(t)
	form := v.do(t, http.MethodGet, v.at+"/-/new", nil)
	require.Contains(t, form.text(t), "It appears after a moderator has approved it.")
	v.fill(t, v.at+"/-/new", v.filled(v.address("bob"), "title", "Purple mode", "text", "Please"))
	link, text := v.link(t, v.address("bob"), 1)
	require.NotContains(t, text, "published")
	shown := v.do(t, http.MethodGet, link, nil).text(t)
	require.Contains(t, shown, "It is sent when you press the button, and appears after a moderator has approved it.")
	require.NotContains(t, shown, "published")
	done := v.press(t, link)
	require.Equal(t, http.StatusOK, done.StatusCode)
	require.Contains(t, done.text(t), "Your text appears after a moderator has approved it.")
	require.Equal(t, v.home, done.link("Boards"))
	require.NotNil(t, v.cookie, "the address was confirmed")
	require.Equal(t, http.StatusGone, v.press(t, link).StatusCode, "the link is used up")
	require.NotContains(t, v.do(t, http.MethodGet, v.at+"?q=purple", nil).text(t), "Purple mode")
	require.Equal(t, http.StatusNotFound, v.do(t, http.MethodGet, v.at+"/purple-mode", nil).StatusCode)

	waiting := v.Do(t, http.MethodGet, "/v1/submissions", nil).Body["data"].([]any)
	require.Len(t, waiting, 1)
	v.Make(t, http.MethodPost, "/v1/submissions/"+waiting[0].(object)["id"].(string)+"/approve", nil)
	require.Contains(t, v.do(t, http.MethodGet, v.at+"/purple-mode", nil).text(t), "Purple mode")
}

// known makes the visitor known to the browser.
func (v *visitor) known(t *testing.T) {
	t.Helper()
	v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	require.Contains(t, v.press(t, link).text(t), "Your vote counts", "votes don't wait")
}

func waitsOfTheKnown(t *testing.T, v *visitor) {
	v.moderate(t)
	v.known(t)
	at := v.at + "/dark-mode"
	require.NotContains(t, v.do(t, http.MethodGet, at+"/-/vote", nil).text(t), "looked at")
	require.Contains(t, v.do(t, http.MethodGet, at+"/-/comment", nil).text(t), "It appears after a moderator has approved it.")
	done := v.do(t, http.MethodPost, at+"/-/comment", url.Values{"text": {"Purple"}})
	require.Equal(t, http.StatusSeeOther, done.StatusCode)
	require.Equal(t, v.home+"/-/waits", done.Header.Get("Location"))
	require.Contains(t, v.read(t, v.home+"/-/waits").text(t), "Thank you, it will appear soon")
	require.NotContains(t, v.do(t, http.MethodGet, at, nil).text(t), "Purple")
}

func waitsOnNoPage(t *testing.T, v *visitor) {
	v.moderate(t)
	v.known(t)
	at := v.at + "/dark-mode"
	for path, form := range map[string]url.Values{
		at + "/-/comment": {"text": {"And purple here"}}, v.at + "/-/new": {"title": {"Purple mode"}, "text": {"Please"}},
	} {
		require.Equal(t, http.StatusSeeOther, v.do(t, http.MethodPost, path, form).StatusCode)
	}
	require.Len(t, v.Do(t, http.MethodGet, "/v1/submissions", nil).Body["data"], 2)
	// The test reads no page earlier, because pages are cached for some seconds.
	for _, path := range []string{v.home, v.at, v.at + "?q=purple", at, v.at + "/-/roadmap", v.home + "/-/sitemap.xml"} {
		page := v.read(t, path).body
		for _, waiting := range []string{"purple here", "Purple mode", "purple-mode"} {
			require.NotContains(t, page, waiting, path)
		}
	}
}

func waitsInGerman(t *testing.T, v *visitor) {
	v.moderate(t)
	form := v.do(t, http.MethodGet, v.at+"/-/new", nil, "Accept-Language", "de")
	require.Contains(t, form.text(t), "Es erscheint, sobald die Moderation es freigegeben hat.")
	require.Contains(t, v.read(t, v.home+"/-/waits", "Accept-Language", "de").text(t), "Danke, es erscheint bald")
}

func queueIsFull(t *testing.T, v *visitor) {
	v.known(t)
	v.moderate(t)
	at := v.at + "/dark-mode"
	require.Equal(t, http.StatusSeeOther, v.do(t, http.MethodPost, at+"/-/comment", url.Values{"text": {"Purple"}}).StatusCode)
	var n int
	v.query(t, `WITH more AS (INSERT INTO submissions (id, organization_id, created_at, kind, reason, board_id, post_id, body_text, email_hash)
		SELECT gen_random_uuid(), organization_id, created_at, kind, reason, board_id, post_id, body_text, sha256(gen_random_uuid()::text::bytea)
		FROM submissions, generate_series(1, 999) WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM more`, &n, v.Organization.ID.UUID().String())
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		var form url.Values
		if method == http.MethodPost {
			form = url.Values{"text": {"Late"}, "title": {"Late"}}
		}
		for _, path := range []string{at + "/-/comment", v.at + "/-/new"} {
			a := v.do(t, method, path, form)
			require.Equal(t, http.StatusForbidden, a.StatusCode, path)
			require.Contains(t, a.text(t), "Too many posts and comments are waiting")
		}
	}
	require.Equal(t, http.StatusOK, v.do(t, http.MethodGet, at+"/-/vote", nil).StatusCode)
	v.Patch(t, v.board, object{"moderated": false})
	require.Equal(t, http.StatusOK, v.do(t, http.MethodGet, at+"/-/comment", nil).StatusCode)
}

func blockedWordWaits(t *testing.T, v *visitor) {
	v.known(t)
	v.Patch(t, "/v1/organization", object{"blockedWords": []string{"casino"}})
	at := v.at + "/dark-mode"
	require.NotContains(t, v.do(t, http.MethodGet, at+"/-/comment", nil).text(t), "looked at")
	done := v.do(t, http.MethodPost, at+"/-/comment", url.Values{"text": {"The CASINO"}})
	require.Equal(t, v.home+"/-/waits", done.Header.Get("Location"))
	require.NotContains(t, v.read(t, v.home+"/-/waits").text(t), "asino")
	require.NotContains(t, v.do(t, http.MethodGet, at, nil).text(t), "CASINO")
}

func TestADisposableAddressIsToldAtItsFieldThatItCantBeUsed(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, published.Start(t).Tenant(t))
	unchanged := v.Watch(t)
	a := v.do(t, http.MethodPost, v.at+"/-/new", v.filled("ada@eu.mailinator.example", "title", ""))
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	for _, told := range []string{"Disposable addresses can’t be used here.", "Please write a title"} {
		require.Contains(t, a.text(t), told)
	}
	require.Contains(t, a.body, `value="ada@eu.mailinator.example"`)
	unchanged(t)
}
