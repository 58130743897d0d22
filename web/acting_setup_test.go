package web_test

import (
	"cmp"
	"io"
	"maps"
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

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// mailOrigin is the public origin of published.
const mailOrigin = "https://feedback.example.com"

// published is behind a proxy. It believes the address of each organization's visitors (tenant.network), so a
// test that uses up a limit of its network leaves the others theirs.
var published = apptest.Shared{Worker: true, Mails: true, Environ: []string{
	proxies, "EARSHOT_PUBLIC_ORIGIN=" + mailOrigin + "/", "EARSHOT_CONTACT_CAP_FREE=1", "EARSHOT_DISPOSABLE_DOMAINS=mailinator.example",
}}

const proxies = "EARSHOT_TRUSTED_PROXIES=127.0.0.0/8"

// visitor is a browser on an organization's public board, with a mailbox.
type visitor struct {
	*tenant
	cookie *http.Cookie
}

// newVisitor gives the organization a public board.
func newVisitor(t *testing.T, n *apptest.Tenant) *visitor {
	t.Helper()
	return &visitor{tenant: newTenant(n).public(t)}
}

// unpublished starts a service without a public origin, which writes its e-mails to a directory. All visitors come
// from one network, and use up its limits.
func unpublished(t *testing.T) *apptest.App {
	t.Helper()
	return apptest.Start(t, apptest.Options{Worker: true, Environ: []string{"EARSHOT_MAIL_DIR=" + t.TempDir()}})
}

// do sends a request as the browser does.
func (v *visitor) do(t *testing.T, method, path string, form url.Values, header ...string) answered {
	t.Helper()
	var body io.Reader
	if form != nil {
		if form.Get("stamp") == minuteAgo {
			form = maps.Clone(form)
			form.Set("stamp", v.App.PublicActions.Stamp(path, time.Now().Add(-time.Minute)))
		}
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, v.App.URL+path, body)
	require.NoError(t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.origin())
	}
	v.forward(r)
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

// minuteAgo stands for the stamp of a form that was open for a minute. do replaces it by the stamp of
// the form at its path.
const minuteAgo = "a minute ago"

// filled returns a form that was open for a minute.
func (v *visitor) filled(email string, more ...string) url.Values {
	form := url.Values{"name": {"Ada"}, "email": {email}, "topic": {""}, "stamp": {minuteAgo}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// fill sends a form and requires the redirect to the page about the e-mail.
func (v *visitor) fill(t *testing.T, path string, form url.Values, header ...string) {
	t.Helper()
	a := v.do(t, http.MethodPost, path, form, header...)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, a.body)
	require.Equal(t, v.home+"/-/sent", a.Header.Get("Location"))
	require.Empty(t, a.Cookies())
}

// letters returns the e-mails to an address.
func (v *visitor) letters(t *testing.T, to string) (all []*mail.Message) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(v.App.Config.MailDir, "*.eml"))
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

var linkInMail = regexp.MustCompile(`https?://\S+/-/confirm\?token=\S+`)

// link waits for the nth e-mail to an address, and returns the path of its link and its text.
func (v *visitor) link(t *testing.T, to string, n int) (path, text string) {
	t.Helper()
	var found []*mail.Message
	require.Eventually(t, func() bool { found = v.letters(t, to); return len(found) >= n }, testkit.Wait, testkit.Tick)
	for _, m := range found {
		raw, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		require.NoError(t, err)
		if text = string(raw); strings.Contains(text, v.home+"/") {
			break
		}
	}
	return v.linkIn(t, text), text
}

// linkIn returns the path of the link in an e-mail.
func (v *visitor) linkIn(t *testing.T, text string) string {
	t.Helper()
	link := linkInMail.FindString(text)
	require.NotEmpty(t, link, text)
	at, err := url.Parse(link)
	require.NoError(t, err)
	require.Equal(t, v.origin(), at.Scheme+"://"+at.Host)
	return at.RequestURI()
}

var stampInForm = regexp.MustCompile(`name="stamp" value="([^"]+)"`)

// stampOf returns the signed time in a form; "" if there is none.
func stampOf(form answered) string {
	if found := stampInForm.FindStringSubmatch(form.body); found != nil {
		return html.UnescapeString(found[1])
	}
	return ""
}

// press follows a link and presses the button.
func (v *visitor) press(t *testing.T, link string) answered {
	t.Helper()
	return v.pressWith(t, link, false)
}

// pressWith follows a link, ticks the box if optIn is true, and presses the button. It follows the
// redirect.
func (v *visitor) pressWith(t *testing.T, link string, optIn bool) answered {
	t.Helper()
	at, err := url.Parse(link)
	require.NoError(t, err)
	form := url.Values{"token": {at.Query().Get("token")}}
	if optIn {
		form.Set("optIn", "1")
	}
	pressed := v.do(t, http.MethodPost, at.Path, form)
	if pressed.StatusCode != http.StatusSeeOther {
		return pressed
	}
	return v.do(t, http.MethodGet, pressed.Header.Get("Location"), nil)
}

// origin is the origin of the pages.
func (v *visitor) origin() string {
	return cmp.Or(strings.TrimSuffix(v.App.Config.PublicOrigin, "/"), v.App.URL)
}

func (v *visitor) address(name string) string { return name + "@" + v.slug + ".example.com" }

// votes returns the votes for a post from the API.
func (v *visitor) votes(t *testing.T, post string) []any {
	t.Helper()
	a := v.Do(t, http.MethodGet, "/v1/posts/"+post+"/votes", nil)
	return a.Body["data"].([]any)
}

// left counts the organization's waiting interactions.
func (v *visitor) left(t *testing.T) (n int) {
	t.Helper()
	v.query(t, "SELECT count(*) FROM interactions WHERE organization_id = $1", &n, v.Organization.ID.UUID().String())
	return n
}

func (v *visitor) query(t *testing.T, sql string, into any, args ...any) {
	t.Helper()
	require.NoError(t, v.App.Pool.QueryRow(t.Context(), sql, args...).Scan(into))
}

// public2 makes another public board, so that the organization has public pages.
func (v *visitor) public2(t *testing.T) {
	t.Helper()
	v.ID(t, "/v1/boards", object{"name": "Other ideas", "public": true})
}
