package web_test

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"earshot/internal/access"
	"earshot/internal/testkit"
)

// visitor is a browser before an organization's public board, with a mailbox.
type visitor struct {
	*tenant
	mailbox string
	cookie  *http.Cookie
}

// mailed starts a service that writes its e-mails into a directory.
func mailed(t *testing.T, tests map[string]func(*testing.T, *visitor)) {
	t.Helper()
	dir := t.TempDir()
	app := testkit.Start(t, testkit.Options{Worker: true, Environ: []string{"EARSHOT_MAIL_DIR=" + dir}})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &visitor{tenant: &tenant{Tenant: app.Tenant(t)}, mailbox: dir}
			v.public(t)
			test(t, v)
		})
	}
}

func TestAnEndUser(t *testing.T) {
	t.Parallel()
	mailed(t, map[string]func(*testing.T, *visitor){
		"votes by a link in an e-mail, once, and the webhook hears of it":          votesByMail,
		"posts and comments by links, as a guest":                                  postsAndComments,
		"isn't asked again on the browser, and takes the vote back":                knownOnTheBrowser,
		"is forgotten when they say so":                                            forgotten,
		"gets nothing kept of them that is over":                                   overIsGone,
		"changes nothing by following a link, only by the button":                  linksChangeNothing,
		"who didn't opt in is no contact, who did is one, and keeps who they were": optIns,
		"is told what is wrong with a form, and finds it filled in again":          badForms,
		"who fills in the trap gets the same page, and no e-mail":                  honeypot,
		"who is too quick, or comes with another's stamp, sends it once more":      tooQuick,
		"gets the same page whoever's the address is, and no flood of links":       samePage,
		"can't act where it is closed":                                             closedForNow,
		"can't act on what isn't public":                                           privateActs,
		"isn't made to act by other sites":                                         otherSites,
		"sees pages that are the same for everybody until they act":                sharedPages,
		"who sends too many forms waits":                                           tooManyForms,
		"reads pages, forms and e-mails in German":                                 germanActs,
	})
}

// do sends a request as the browser does.
func (v *visitor) do(t *testing.T, method, path string, form url.Values, header ...string) answered {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, v.App.URL+path, body)
	require.NoError(t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.App.URL)
	}
	if v.cookie != nil && strings.HasPrefix(path, v.cookie.Path) {
		r.AddCookie(v.cookie)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	for _, c := range answer.Cookies() {
		if v.cookie = c; c.MaxAge < 0 {
			v.cookie = nil
		}
	}
	return answered{answer, string(text)}
}

// filled is a form that was open for a minute.
func (v *visitor) filled(email string, more ...string) url.Values {
	form := url.Values{"name": {"Ada"}, "email": {email}, "topic": {""}, "stamp": {v.App.Interactions.Stamp(time.Now().Add(-time.Minute))}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// fill sends a form, which is answered by the page that says to look into the mailbox.
func (v *visitor) fill(t *testing.T, path string, form url.Values, header ...string) {
	t.Helper()
	a := v.do(t, http.MethodPost, path, form, header...)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, a.body)
	require.Equal(t, v.home+"/-/sent", a.Header.Get("Location"))
	require.Empty(t, a.Cookies())
}

// letters are the e-mails to an address.
func (v *visitor) letters(t *testing.T, to string) (all []*mail.Message) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(v.mailbox, "*.eml"))
	require.NoError(t, err)
	for _, file := range files {
		f, err := os.Open(file)
		require.NoError(t, err)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		m, err := mail.ReadMessage(strings.NewReader(string(text)))
		require.NoError(t, err)
		if strings.Contains(m.Header.Get("To"), to) {
			all = append(all, m)
		}
	}
	return all
}

var linkInMail = regexp.MustCompile(`http://\S+/-/confirm\?token=\S+`)

// link waits for the nth e-mail to an address, and returns the path of its link and its text.
func (v *visitor) link(t *testing.T, to string, n int) (path, text string) {
	t.Helper()
	var found []*mail.Message
	require.Eventually(t, func() bool { found = v.letters(t, to); return len(found) >= n }, testkit.Wait, 20*time.Millisecond)
	for _, m := range found {
		raw, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		require.NoError(t, err)
		if text = string(raw); strings.Contains(text, v.home+"/") {
			break
		}
	}
	link := linkInMail.FindString(text)
	require.NotEmpty(t, link, text)
	at, err := url.Parse(link)
	require.NoError(t, err)
	require.Equal(t, v.App.URL, "http://"+at.Host)
	return at.RequestURI(), text
}

// press follows a link and presses the button.
func (v *visitor) press(t *testing.T, link string) answered {
	t.Helper()
	at, err := url.Parse(link)
	require.NoError(t, err)
	return v.do(t, http.MethodPost, at.Path, url.Values{"token": {at.Query().Get("token")}})
}

func (v *visitor) address(name string) string { return name + "@" + v.slug + ".example.com" }

// votes are those on a post by the API.
func (v *visitor) votes(t *testing.T, post string) []any {
	t.Helper()
	a := v.Do(t, http.MethodGet, "/v1/posts/"+post+"/votes", nil)
	return a.Body["data"].([]any)
}

// left are the organization's interactions that wait.
func (v *visitor) left(t *testing.T) (n int) {
	t.Helper()
	v.query(t, "SELECT count(*) FROM interactions WHERE organization_id = $1", &n, v.Organization.ID.UUID().String())
	return n
}

func (v *visitor) query(t *testing.T, sql string, into any, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), v.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	require.NoError(t, c.QueryRow(t.Context(), sql, args...).Scan(into))
}

func votesByMail(t *testing.T, v *visitor) {
	receiver := testkit.NewReceiver(t)
	v.Register(t, receiver, "vote.created", "contact.created")
	post := v.post(t, "Dark mode", nil)
	at := v.at + "/dark-mode"
	page := v.read(t, at)
	require.Equal(t, at+"/-/vote", page.link("Vote for this"))
	form := v.do(t, http.MethodGet, at+"/-/vote", nil)
	require.Contains(t, form.body, `<input type="checkbox" name="optIn" value="1">`, "the box isn't ticked")
	v.fill(t, at+"/-/vote", v.filled(v.address("ada")))
	require.Contains(t, v.read(t, v.home+"/-/sent").text(t), "Look into your mailbox")
	require.Empty(t, v.votes(t, post), "not before it is confirmed")
	link, text := v.link(t, v.address("ada"), 1)
	require.NotContains(t, text, "Ada")
	require.NotContains(t, text, "Dark mode")
	shown := v.do(t, http.MethodGet, link, nil)
	require.Contains(t, shown.text(t), "Your vote counts when you press the button.")
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
	require.Contains(t, again.text(t), "If you have pressed the button before, it counts.")
	require.Equal(t, http.StatusGone, v.do(t, http.MethodGet, link, nil).StatusCode)
	require.Len(t, v.votes(t, post), 1)
	require.Zero(t, v.left(t))

	// The same person, by another link and another way to write the address, and by the API.
	v.cookie = nil
	v.fill(t, at+"/-/vote", v.filled(" "+strings.ToUpper(v.address("ada"))))
	require.Eventually(t, func() bool { return len(v.letters(t, v.address("ada"))) == 2 }, testkit.Wait, 20*time.Millisecond)
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

	// From another browser.
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

	// Another organization doesn't know it.
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
	// A link counts in its organization alone.
	theirs := v.other(t)
	elsewhere := strings.Replace(link, v.home+"/", theirs.home+"/", 1)
	require.Equal(t, http.StatusGone, v.press(t, elsewhere).StatusCode)
	require.Equal(t, http.StatusOK, v.press(t, link).StatusCode)
}

func badForms(t *testing.T, v *visitor) {
	unchanged := v.Watch(t)
	for missing, form := range map[string]url.Values{
		"Please write a title":         v.filled(v.address("ada"), "text", "My words"),
		"Please write your name":       v.filled(v.address("ada"), "title", "x", "text", "My words", "name", "  "),
		"This isn’t an e-mail address": v.filled("nobody", "title", "x", "text", "My words"),
		"Please write a text":          v.filled(v.address("ada"), "title", "x", "text", "My words"+strings.Repeat("x", 10_000)),
	} {
		a := v.do(t, http.MethodPost, v.at+"/-/new", form)
		require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, missing)
		require.Contains(t, a.text(t), missing)
		require.Contains(t, a.body, "My words")
		require.Contains(t, a.body, `aria-invalid="true"`)
	}
	a := v.do(t, http.MethodPost, v.at+"/-/new", url.Values{"text": {strings.Repeat("x", 200_000)}})
	require.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode)
	a = v.do(t, http.MethodPost, v.at+"/-/new", v.filled(v.address("ada"), "title", "a\x00b", "text", "\xff"))
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	unchanged(t)
}

func honeypot(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	unchanged := v.Watch(t)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("bot"), "topic", "Pills"))
	unchanged(t)
}

func tooQuick(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	form := v.do(t, http.MethodGet, v.at+"/dark-mode/-/vote", nil)
	stamp := html.UnescapeString(regexp.MustCompile(`name="stamp" value="([^"]+)"`).FindStringSubmatch(form.body)[1])
	for _, s := range []string{stamp, "", "x", stamp[1:], v.App.Interactions.Stamp(time.Now().Add(-25 * time.Hour)), v.App.Interactions.Stamp(time.Now().Add(time.Hour))} {
		a := v.do(t, http.MethodPost, v.at+"/dark-mode/-/vote", v.filled(v.address("ada"), "stamp", s))
		require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
		require.Contains(t, a.text(t), "Please send it once more.")
		require.Contains(t, a.body, v.address("ada"))
	}
	require.Zero(t, v.left(t))
}

func samePage(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	v.ID(t, "/v1/contacts", object{"email": v.address("known")})
	at := v.at + "/dark-mode/-/vote"
	answer := func(email string) (status int, header http.Header, body string) {
		a := v.do(t, http.MethodPost, at, v.filled(email))
		a.Header.Del("Date")
		a.Header.Del("X-Request-Id")
		return a.StatusCode, a.Header, a.body
	}
	status, header, body := answer(v.address("known"))
	for i := range 8 {
		for _, name := range []string{"known", "stranger"} {
			s, h, b := answer(v.address(name))
			require.Equal(t, status, s, i)
			require.Equal(t, header, h)
			require.Equal(t, body, b)
		}
	}
	for _, name := range []string{"known", "stranger"} {
		require.Eventually(t, func() bool { return len(v.letters(t, v.address(name))) == 6 }, testkit.Wait, 20*time.Millisecond)
	}
	// What was too much goes by itself.
	require.Eventually(t, func() bool { return v.left(t) == 12 }, testkit.Wait, 20*time.Millisecond)
	require.Len(t, v.letters(t, v.address("known")), 6)
}

func closedForNow(t *testing.T, v *visitor) {
	post := v.post(t, "Dark mode", nil)
	at := v.at + "/dark-mode"
	v.fill(t, at+"/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	closed, open := true, false
	v.operate(t, access.OrganizationPatch{PublicClosed: &closed})
	require.Eventually(t, func() bool { return v.read(t, at).link("Vote for this") == "" }, testkit.Wait, 20*time.Millisecond)
	require.Eventually(t, func() bool { return v.read(t, v.at).link("Write a post") == "" }, testkit.Wait, 20*time.Millisecond)
	for _, path := range []string{at + "/-/vote", at + "/-/comment", v.at + "/-/new"} {
		require.Equal(t, http.StatusForbidden, v.do(t, http.MethodGet, path, nil).StatusCode, path)
		a := v.do(t, http.MethodPost, path, v.filled(v.address("eve"), "title", "x", "text", "x"))
		require.Equal(t, http.StatusForbidden, a.StatusCode)
		require.Contains(t, a.text(t), "Closed for now")
	}
	require.Equal(t, http.StatusForbidden, v.press(t, link).StatusCode)
	require.Empty(t, v.votes(t, post))
	v.operate(t, access.OrganizationPatch{PublicClosed: &open})
	require.Equal(t, http.StatusOK, v.press(t, link).StatusCode, "the link still counts")
	v.operate(t, access.OrganizationPatch{PublicClosed: &closed})
	require.Equal(t, http.StatusForbidden, v.do(t, http.MethodPost, at+"/-/unvote", url.Values{}).StatusCode)
	require.Len(t, v.votes(t, post), 1)
}

func privateActs(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.public2(t)
	v.Patch(t, v.board, object{"public": false})
	for _, path := range []string{v.at + "/-/new", v.at + "/dark-mode/-/vote", v.at + "/dark-mode/-/comment", v.at + "/nothing/-/vote"} {
		require.Equal(t, http.StatusNotFound, v.do(t, http.MethodGet, path, nil).StatusCode, path)
		require.Equal(t, http.StatusNotFound, v.do(t, http.MethodPost, path, v.filled(v.address("eve"))).StatusCode, path)
	}
	require.Equal(t, http.StatusNotFound, v.do(t, http.MethodPost, v.at+"/dark-mode/-/unvote", url.Values{}).StatusCode)
	require.Equal(t, http.StatusGone, v.press(t, link).StatusCode, "what it was for isn't public any more")
	require.Nil(t, v.cookie)

	nobody := v.App.Tenant(t)
	for _, path := range []string{"/-/sent", "/-/confirm?token=x"} {
		require.Equal(t, http.StatusNotFound, v.do(t, http.MethodGet, "/b/"+nobody.Organization.ID.String()+path, nil).StatusCode, path)
	}
}

// public2 makes another public board, so that the organization is there.
func (v *visitor) public2(t *testing.T) {
	t.Helper()
	v.ID(t, "/v1/boards", object{"name": "Other ideas", "public": true})
}

func otherSites(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"}} {
		for _, path := range []string{v.at + "/dark-mode/-/vote", v.at + "/dark-mode/-/unvote", v.at + "/-/new", v.home + "/-/confirm", v.home + "/-/forget"} {
			a := v.do(t, http.MethodPost, path, v.filled(v.address("ada")), header...)
			require.Equal(t, http.StatusForbidden, a.StatusCode, "%s %s", path, header)
		}
	}
	require.Zero(t, v.left(t))
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
}

func tooManyForms(t *testing.T, v *visitor) {
	own := *v
	app := testkit.Start(t, testkit.Options{Environ: []string{"EARSHOT_TRUSTED_PROXIES=127.0.0.0/8"}})
	own.tenant = &tenant{Tenant: app.Tenant(t)}
	own.public(t)
	own.post(t, "Dark mode", nil)
	from := []string{"X-Forwarded-For", "203.0.113.7"}
	for range 60 {
		own.fill(t, own.at+"/dark-mode/-/vote", own.filled(own.address("bot"), "topic", "x"), from...)
	}
	a := own.do(t, http.MethodPost, own.at+"/dark-mode/-/vote", own.filled(own.address("ada")), from...)
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	own.fill(t, own.at+"/dark-mode/-/vote", own.filled(own.address("ada")), "X-Forwarded-For", "203.0.113.8")
}

func germanActs(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	form := v.do(t, http.MethodGet, v.at+"/dark-mode/-/vote", nil, "Accept-Language", "de")
	require.Contains(t, form.text(t), "Ihre E-Mail-Adresse")
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")), "Accept-Language", "de")
	_, text := v.link(t, v.address("ada"), 1)
	require.Contains(t, text, "öffentlichen Board von Acme")
}
