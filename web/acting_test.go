package web_test

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAnEndUser(t *testing.T) {
	t.Parallel()
	apptest.Together(t, unpublished(t), newVisitor, map[string]func(*testing.T, *visitor){
		"votes by a link in an e-mail, once, and the webhook hears of it":             votesByMail,
		"posts and comments by links, as a guest":                                     postsAndComments,
		"isn't asked again on the browser, and takes the vote back":                   knownOnTheBrowser,
		"with a session posts and comments once, however often the button is pressed": pressedTwice,
		"is forgotten when they say so":                                               forgotten,
		"gets nothing kept of them that is over":                                      overIsGone,
		"changes nothing by following a link, only by the button":                     linksChangeNothing,
		"becomes a contact only by opting in, and a known contact stays as it is":     optIns,
		"sees the errors of a form, and finds it filled in again":                     badForms,
		"gets the same page but no e-mail after filling in the trap":                  honeypot,
		"has to resend a form that comes too soon or with a foreign stamp":            tooQuick,
		"gets the same page for known and unknown addresses, and no flood of links":   samePage,
		"can't act where it is closed":                                                closedForNow,
		"can't act on a private board":                                                privateActs,
		"isn't made to act by other sites":                                            otherSites,
		"acts in the widget's frame, too":                                             frameActs,
		"isn't made to act there by other sites":                                      frameOtherSites,
		"sees pages that are the same for everybody until they act":                   sharedPages,
		"reads pages, forms and e-mails in German":                                    germanActs,
		"gets no link to a host that somebody made up":                                foreignHost,
	})
}

func votesByMail(t *testing.T, v *visitor) {
	receiver := testkit.NewReceiver(t)
	v.Register(t, receiver, "vote.created", "contact.created")
	post := v.post(t, "Dark mode", nil)
	at := v.at + "/dark-mode"
	page := v.read(t, at)
	require.Equal(t, at+"/-/vote", page.link("Vote for this"))
	v.fill(t, at+"/-/vote", v.filled(v.address("ada")))
	require.Contains(t, v.read(t, v.home+"/-/sent").text(t), "Check your mailbox")
	require.Empty(t, v.votes(t, post), "not before it is confirmed")
	link, text := v.link(t, v.address("ada"), 1)
	require.NotContains(t, text, "Ada")
	require.NotContains(t, text, "Dark mode")
	shown := v.do(t, http.MethodGet, link, nil)
	for _, told := range []string{"Your vote counts when you press the button.", "Your vote is for Dark mode", "Under the name Ada"} {
		require.Contains(t, shown.text(t), told)
	}
	done := v.press(t, link)
	require.Equal(t, http.StatusOK, done.StatusCode)
	require.Contains(t, done.text(t), "Your vote counts")
	require.Equal(t, at, done.link("Dark mode"))

	votes := v.votes(t, post)
	require.Len(t, votes, 1)
	require.Nil(t, votes[0].(object)["userId"])
	require.Nil(t, votes[0].(object)["contactId"])
	require.Contains(t, string(receiver.Await(t, 1)[0].Body), `"userId":null`)

	again := v.press(t, link)
	require.Equal(t, http.StatusGone, again.StatusCode)
	require.Contains(t, again.text(t), "If you pressed the button before, it counts.")
	require.Equal(t, http.StatusGone, v.do(t, http.MethodGet, link, nil).StatusCode)
	require.Len(t, v.votes(t, post), 1)
	require.Zero(t, v.left(t))

	// The same person votes by another link, with another spelling of the address, and by the API.
	v.cookie = nil
	v.fill(t, at+"/-/vote", v.filled(" "+strings.ToUpper(v.address("ada"))))
	require.Eventually(t, func() bool { return len(v.letters(t, v.address("ada"))) == 2 }, testkit.Wait, testkit.Tick)
	for _, m := range v.letters(t, v.address("ada")) {
		raw, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		require.NoError(t, err)
		if other := linkInMail.FindString(string(raw)); !strings.HasSuffix(other, link) {
			require.Equal(t, http.StatusOK, v.press(t, strings.TrimPrefix(other, v.App.URL)).StatusCode)
		}
	}
	contact := v.ID(t, "/v1/contacts", object{"email": v.address("ada")})
	v.Make(t, http.MethodPost, "/v1/posts/"+post+"/votes", object{"contactId": contact})
	require.Len(t, v.votes(t, post), 1, "one vote a person")
	require.EqualValues(t, "1", v.Make(t, http.MethodGet, "/v1/contacts/"+contact, nil)["voteCount"].(interface{ String() string }).String())
}

func postsAndComments(t *testing.T, v *visitor) {
	receiver := testkit.NewReceiver(t)
	v.Register(t, receiver, "post.created", "comment.created")
	require.Equal(t, v.at+"/-/new", v.read(t, v.at).link("Write a post"))
	v.fill(t, v.at+"/-/new", v.filled(v.address("bob"), "title", "Export as <PDF>", "text", "First line\r\nsecond"))
	link, _ := v.link(t, v.address("bob"), 1)
	done := v.press(t, link)
	require.Contains(t, done.text(t), "Your post is published")
	at := v.at + "/export-as-pdf"
	require.Equal(t, at, done.link("Export as <PDF>"))
	page := v.do(t, http.MethodGet, at, nil)
	require.Contains(t, page.text(t), "Export as <PDF>")

	// The second comment comes from another browser.
	v.cookie = nil
	v.fill(t, at+"/-/comment", v.filled(v.address("eve"), "text", "So do **I**"))
	link, _ = v.link(t, v.address("eve"), 1)
	require.Contains(t, v.press(t, link).text(t), "Your comment is published")
	text := v.do(t, http.MethodGet, at, nil).text(t)
	require.Contains(t, text, "So do I")
	require.NotContains(t, text, "Ada", "customers are named to nobody")
	deliveries := receiver.Await(t, 2)
	for _, d := range deliveries {
		require.NoError(t, d.Invalid)
		if strings.Contains(string(d.Body), "comment.created") {
			require.Regexp(t, `"authorUserId":"usr_`, string(d.Body))
		}
	}
	var kinds int
	v.query(t, "SELECT count(*) FROM users WHERE organization_id = $1 AND kind = 'guest' AND contact_id IS NULL AND name = ''", &kinds,
		v.Organization.ID.UUID().String())
	require.Equal(t, 2, kinds)
	for _, m := range v.Do(t, http.MethodGet, "/v1/members", nil).Body["data"].([]any) {
		require.Equal(t, "owner", m.(object)["role"])
	}
}

func knownOnTheBrowser(t *testing.T, v *visitor) {
	first, second := v.post(t, "Dark mode", nil), v.post(t, "Export", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.press(t, link)
	require.NotNil(t, v.cookie)
	require.True(t, v.cookie.HttpOnly)
	require.False(t, v.cookie.Secure, "it is http here")
	require.Equal(t, http.SameSiteLaxMode, v.cookie.SameSite)
	require.Equal(t, v.home, v.cookie.Path)
	require.Equal(t, 30*24*60*60, v.cookie.MaxAge)
	require.NotContains(t, v.cookie.Value, "ada")

	page := v.do(t, http.MethodGet, v.at+"/dark-mode", nil)
	require.Contains(t, page.text(t), "You have voted for this.")
	require.Equal(t, "private, no-store", page.Header.Get("Cache-Control"))
	require.Contains(t, page.Header.Values("Vary"), "Cookie")

	at := v.at + "/export"
	require.NotContains(t, v.do(t, http.MethodGet, at, nil).text(t), "You have voted")
	done := v.do(t, http.MethodPost, at+"/-/vote", url.Values{})
	require.Equal(t, http.StatusSeeOther, done.StatusCode, done.body)
	require.Equal(t, at, done.Header.Get("Location"))
	require.Contains(t, v.do(t, http.MethodGet, at, nil).text(t), "You have voted for this.")
	require.Len(t, v.votes(t, second), 1)
	for range 2 {
		require.Equal(t, http.StatusSeeOther, v.do(t, http.MethodPost, at+"/-/unvote", url.Values{}).StatusCode)
		require.NotContains(t, v.do(t, http.MethodGet, at, nil).text(t), "You have voted")
	}
	require.Empty(t, v.votes(t, second))
	require.Len(t, v.votes(t, first), 1)

	form := v.do(t, http.MethodGet, at+"/-/comment", nil)
	require.NotContains(t, form.body, `name="email"`)
	require.Equal(t, http.StatusSeeOther, v.do(t, http.MethodPost, at+"/-/comment", url.Values{"text": {"At once"}}).StatusCode)
	require.Contains(t, v.do(t, http.MethodGet, at, nil).text(t), "At once")
	made := v.do(t, http.MethodPost, v.at+"/-/new", url.Values{"title": {"Also at once"}})
	require.Equal(t, v.at+"/also-at-once", made.Header.Get("Location"))
	require.Len(t, v.letters(t, v.address("ada")), 1, "nothing more was mailed")

	// Another organization does not accept the cookie.
	theirs := v.other(t)
	theirs.post(t, "Dark mode", nil)
	other := *v
	other.tenant = theirs
	other.cookie = &http.Cookie{Name: v.cookie.Name, Value: v.cookie.Value, Path: theirs.home}
	require.NotContains(t, other.do(t, http.MethodGet, theirs.at+"/dark-mode", nil).text(t), "known")
	other.cookie.Value = v.cookie.Value[:len(v.cookie.Value)-4] + "AAAA"
	require.Equal(t, http.StatusOK, other.do(t, http.MethodGet, theirs.at+"/dark-mode", nil).StatusCode)
}

func forgotten(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.press(t, link)
	require.Contains(t, v.do(t, http.MethodGet, v.at+"/dark-mode", nil).text(t), v.address("ada"))
	require.Equal(t, http.StatusSeeOther, v.do(t, http.MethodPost, v.home+"/-/forget", url.Values{}).StatusCode)
	require.Nil(t, v.cookie)
	require.NotContains(t, v.do(t, http.MethodGet, v.at+"/dark-mode", nil).text(t), v.address("ada"))
}

func overIsGone(t *testing.T, v *visitor) {
	post := v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	var id string
	v.query(t, "UPDATE interactions SET expires_at = now() WHERE organization_id = $1 RETURNING id::text", &id, v.Organization.ID.UUID().String())
	require.Equal(t, http.StatusGone, v.do(t, http.MethodGet, link, nil).StatusCode)
	require.Equal(t, http.StatusGone, v.press(t, link).StatusCode)
	require.Empty(t, v.votes(t, post))
	require.Nil(t, v.cookie)
}

func linksChangeNothing(t *testing.T, v *visitor) {
	post := v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	for range 3 {
		shown := v.do(t, http.MethodGet, link, nil)
		require.Equal(t, http.StatusOK, shown.StatusCode)
		require.Equal(t, "private, no-store", shown.Header.Get("Cache-Control"))
		v.do(t, http.MethodHead, link, nil)
	}
	require.Empty(t, v.votes(t, post))
	require.Nil(t, v.cookie)
	// A link is valid in its organization only.
	theirs := v.other(t)
	elsewhere := strings.Replace(link, v.home+"/", theirs.home+"/", 1)
	require.Equal(t, http.StatusGone, v.press(t, elsewhere).StatusCode)
	require.Equal(t, http.StatusOK, v.press(t, link).StatusCode)
}

func sharedPages(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	first := v.read(t, v.at+"/dark-mode")
	require.Contains(t, first.Header.Values("Vary"), "Cookie")
	require.Equal(t, "no-cache", first.Header.Get("Cache-Control"))
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	require.Nil(t, v.cookie, "no cookie before somebody has confirmed")
	link, _ := v.link(t, v.address("ada"), 1)
	v.press(t, link)
	for range 3 {
		own := v.do(t, http.MethodGet, v.at+"/dark-mode", nil, "If-None-Match", first.Header.Get("ETag"))
		require.Equal(t, http.StatusOK, own.StatusCode)
		require.Contains(t, own.text(t), v.address("ada"))
		require.Empty(t, own.Header.Get("ETag"))
		require.NotContains(t, v.read(t, v.at+"/dark-mode").text(t), v.address("ada"))
	}
	// An invalid cookie does not bypass the shared page, which may be a second old.
	require.Eventually(t, func() bool {
		first = v.read(t, v.at+"/dark-mode")
		return strings.Contains(first.text(t), "1 vote")
	}, testkit.Wait, testkit.Wait/1000)
	v.cookie.Value = v.cookie.Value[:len(v.cookie.Value)-4] + "AAAA"
	for _, kept := range []string{v.cookie.Value, "x", ""} {
		v.cookie.Value = kept
		page := v.do(t, http.MethodGet, v.at+"/dark-mode", nil)
		require.Equal(t, first.Header.Get("ETag"), page.Header.Get("ETag"), kept)
		require.Equal(t, "no-cache", page.Header.Get("Cache-Control"))
	}
}

func germanActs(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	form := v.do(t, http.MethodGet, v.at+"/dark-mode/-/vote", nil, "Accept-Language", "de")
	require.Contains(t, form.text(t), "Ihre E-Mail-Adresse")
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")), "Accept-Language", "de")
	_, text := v.link(t, v.address("ada"), 1)
	require.Contains(t, text, "öffentlichen Board von Acme")
}
