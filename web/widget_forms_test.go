package web_test

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestFormsInTheWidgetsFrame(t *testing.T) {
	t.Parallel()
	apptest.Together(t, published.Start(t), newVisitor, map[string]func(*testing.T, *visitor){
		"take posts, votes and comments, which count once their links were used": frameActs,
		"ignore the browser's cookie, so every action needs a link":              frameKnowsNobody,
		"may be shown by pages of the origins that were allowed, alone":          frameFormAncestors,
		"come back filled in, with the errors":                                   frameBadForm,
		"send no e-mail when the trap is filled in":                              frameTrap,
		"are closed where those of the boards are, and lead back":                frameClosed,
		"are not there where the board isn't public":                             framePrivateForms,
		"count as those of the boards do":                                        frameTooMany,
		"are in German":                                                          frameGerman,
	})
}

// fillFrame sends a form in the frame.
func (v *visitor) fillFrame(t *testing.T, path string, form url.Values, header ...string) {
	t.Helper()
	a := v.do(t, http.MethodPost, path, form, header...)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, a.body)
	require.Equal(t, v.inFrame()+"/-/sent", a.Header.Get("Location"))
	require.Empty(t, a.Header.Values("Set-Cookie"))
}

func frameActs(t *testing.T, v *visitor) {
	v.allow(t)
	post := v.post(t, "Dark mode", nil)
	at := v.inFrame()
	require.Equal(t, at+"/-/new", v.read(t, at).link("Write a post"))
	one := v.read(t, at+"/dark-mode")
	require.Equal(t, at+"/dark-mode/-/vote", one.link("Vote for this"))
	require.Equal(t, at+"/dark-mode/-/comment", one.link("Write a comment"))
	form := v.do(t, http.MethodGet, at+"/dark-mode/-/comment", nil)
	require.Equal(t, at+"/dark-mode", form.link("Dark mode"))
	require.Contains(t, form.body, `action="`+at+`/dark-mode/-/comment" target="_self"`)
	require.Equal(t, "private, no-store", form.Header.Get("Cache-Control"))

	for path, more := range map[string][]string{
		"/-/new":               {"title", "Export as PDF", "text", "Please."},
		"/dark-mode/-/vote":    nil,
		"/dark-mode/-/comment": {"text", "At night"},
	} {
		v.fillFrame(t, at+path, v.filled(v.address("ada"), more...))
	}
	sent := v.read(t, at+"/-/sent")
	require.Contains(t, sent.text(t), "Check your mailbox")
	require.Equal(t, at, sent.link("Posts"))
	require.Empty(t, v.votes(t, post), "not before it is confirmed")
	require.Eventually(t, func() bool { return len(v.letters(t, v.address("ada"))) == 3 }, testkit.Wait, testkit.Tick)
	for _, m := range v.letters(t, v.address("ada")) {
		raw, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		require.NoError(t, err)
		link := v.linkIn(t, string(raw))
		require.True(t, strings.HasPrefix(link, v.home+"/-/confirm?"), "on the board's own page, which nobody frames: %s", link)
		require.Equal(t, http.StatusOK, v.press(t, link).StatusCode)
	}
	require.Len(t, v.votes(t, post), 1)
	require.Eventually(t, func() bool { return strings.Contains(v.read(t, at).text(t), "Export as PDF") }, testkit.Wait, testkit.Tick)
	require.Eventually(t, func() bool { return strings.Contains(v.read(t, at+"/dark-mode").text(t), "At night") }, testkit.Wait, testkit.Tick)
}

func frameKnowsNobody(t *testing.T, v *visitor) {
	v.allow(t)
	post := v.post(t, "Dark mode", nil)
	v.post(t, "Export", nil)
	v.fill(t, v.at+"/export/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.press(t, link)
	require.NotNil(t, v.cookie)
	known := []string{"Cookie", v.cookie.Name + "=" + v.cookie.Value}
	at := v.inFrame() + "/dark-mode"
	form := v.do(t, http.MethodGet, at+"/-/vote", nil, known...)
	require.Contains(t, form.body, `name="email"`)
	require.NotContains(t, form.body, v.address("ada"))
	require.Equal(t, v.read(t, at).body, v.do(t, http.MethodGet, at, nil, known...).body)
	// A known visitor's empty form is enough on the board, but not in the frame.
	a := v.do(t, http.MethodPost, at+"/-/vote", url.Values{}, known...)
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	v.fillFrame(t, at+"/-/vote", v.filled(v.address("ada")), known...)
	require.Empty(t, v.votes(t, post))
	for _, path := range []string{"/dark-mode/-/unvote", "/-/confirm", "/-/forget"} {
		a := v.do(t, http.MethodPost, v.inFrame()+path, url.Values{}, known...)
		require.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, path)
	}
}

func frameFormAncestors(t *testing.T, v *visitor) {
	v.allow(t)
	v.post(t, "Dark mode", nil)
	at := v.inFrame()
	pages := map[string]answered{
		"vote":    v.do(t, http.MethodGet, at+"/dark-mode/-/vote", nil),
		"post":    v.do(t, http.MethodGet, at+"/-/new", nil),
		"refused": v.do(t, http.MethodPost, at+"/-/new", url.Values{}),
		"sent":    v.read(t, at+"/-/sent"),
	}
	for name, page := range pages {
		require.Equal(t, product+" http://localhost:3000", page.ancestors(), name)
		require.Contains(t, page.Header.Get("Content-Security-Policy"), "form-action 'self'", name)
		require.Equal(t, "cross-origin", page.Header.Get("Cross-Origin-Resource-Policy"), name)
		require.Contains(t, page.body, `data-origins="`+product+` http://localhost:3000 "`, name)
		require.NotContains(t, page.body, v.Organization.ID.String(), name)
		require.Empty(t, page.Header.Values("Set-Cookie"), name)
	}
	require.Equal(t, "'none'", v.do(t, http.MethodGet, v.at+"/-/new", nil).ancestors(), "the board's own form is framed by nobody")
}

func frameBadForm(t *testing.T, v *visitor) {
	v.allow(t)
	unchanged := v.Watch(t)
	a := v.do(t, http.MethodPost, v.inFrame()+"/-/new", v.filled("nobody", "title", " ", "text", "My words"))
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	for _, told := range []string{"Please write a title", "This isn’t an e-mail address", "My words"} {
		require.Contains(t, a.text(t), told)
	}
	a = v.do(t, http.MethodPost, v.inFrame()+"/-/new", v.filled(v.address("ada"), "title", "x", "stamp", v.App.PublicActions.Stamp(v.inFrame()+"/-/new", time.Now())))
	require.Contains(t, a.text(t), "That was quick. Please send it once more.")
	a = v.do(t, http.MethodPost, v.inFrame()+"/-/new", url.Values{"text": {strings.Repeat("x", 200_000)}})
	require.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode)
	require.Equal(t, v.inFrame(), a.link("Posts"), "the frame has no address bar")
	unchanged(t)
}

func frameTrap(t *testing.T, v *visitor) {
	v.allow(t)
	unchanged := v.Watch(t)
	v.fillFrame(t, v.inFrame()+"/-/new", v.filled(v.address("bot"), "title", "Pills", "topic", "Pills"))
	unchanged(t)
}

func frameOtherSites(t *testing.T, v *visitor) {
	v.allow(t)
	v.post(t, "Dark mode", nil)
	for _, header := range [][]string{{"Origin", product}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"}} {
		for _, path := range []string{"/dark-mode/-/vote", "/dark-mode/-/comment", "/-/new"} {
			a := v.do(t, http.MethodPost, v.inFrame()+path, v.filled(v.address("ada"), "title", "x", "text", "x"), header...)
			require.Equal(t, http.StatusForbidden, a.StatusCode, "%s %s", path, header)
		}
	}
	require.Zero(t, v.left(t))
}

func frameClosed(t *testing.T, v *visitor) {
	v.allow(t)
	v.post(t, "Dark mode", nil)
	closed := true
	v.operate(t, access.OrganizationPatch{PublicClosed: &closed})
	at := v.inFrame() + "/dark-mode"
	require.Eventually(t, func() bool {
		return v.read(t, at).link("Vote for this") == "" && v.read(t, v.inFrame()).link("Write a post") == ""
	}, testkit.Wait, testkit.Tick)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		var form url.Values
		if method == http.MethodPost {
			form = v.filled(v.address("eve"))
		}
		a := v.do(t, method, at+"/-/vote", form)
		require.Equal(t, http.StatusForbidden, a.StatusCode)
		require.Contains(t, a.text(t), "Closed for now")
		require.Equal(t, at, a.link("Posts"))
	}
	require.Zero(t, v.left(t))
}

func framePrivateForms(t *testing.T, v *visitor) {
	v.allow(t)
	v.ID(t, "/v1/boards", object{"name": "Inner"})
	none := v.missing(t, "/w/nobody/ideas")
	for _, path := range []string{"/w/nobody/ideas/-/new", "/w/" + v.slug + "/inner/-/new", v.inFrame() + "/nothing/-/vote", v.inFrame() + "/nothing/-/comment"} {
		for _, a := range []answered{v.do(t, http.MethodGet, path, nil), v.do(t, http.MethodPost, path, v.filled(v.address("eve")))} {
			require.Equal(t, http.StatusNotFound, a.StatusCode, path)
			require.Equal(t, none.body, a.body, path)
		}
	}
	require.Equal(t, none.body, v.missing(t, "/w/"+v.slug+"/inner/-/sent").body)
	require.Zero(t, v.left(t))
}

func frameTooMany(t *testing.T, v *visitor) {
	v.allow(t)
	v.post(t, "Dark mode", nil)
	for range 30 {
		v.fillFrame(t, v.inFrame()+"/-/new", v.filled(v.address("bot"), "topic", "x"))
		v.fill(t, v.at+"/-/new", v.filled(v.address("bot"), "topic", "x"))
	}
	a := v.do(t, http.MethodPost, v.inFrame()+"/-/new", v.filled(v.address("ada"), "title", "x"))
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Equal(t, v.inFrame(), a.link("Posts"))
}

func frameGerman(t *testing.T, v *visitor) {
	v.allow(t)
	form := v.do(t, http.MethodGet, v.inFrame()+"/-/new", nil, "Accept-Language", "de")
	require.Contains(t, form.text(t), "Beitrag schreiben")
	require.Contains(t, form.text(t), "Das ganze Board in einem neuen Fenster öffnen")
	v.fillFrame(t, v.inFrame()+"/-/new", v.filled(v.address("ada"), "title", "Export"), "Accept-Language", "de")
	_, text := v.link(t, v.address("ada"), 1)
	require.Contains(t, text, "Guten Tag")
	require.Contains(t, v.read(t, v.inFrame()+"/-/sent", "Accept-Language", "de").text(t), "Postfach")
}
