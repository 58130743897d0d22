package web_test

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit"
)

func badForms(t *testing.T, v *visitor) {
	unchanged := v.Watch(t)
	for missing, form := range map[string]url.Values{
		"Please write a title":           v.filled(v.address("ada"), "text", "My words"),
		"remove the invisible character": v.filled(v.address("ada"), "title", "abc\u202egnp.exe", "text", "My words"),
		"Please write your name":         v.filled(v.address("ada"), "title", "x", "text", "My words", "name", "  "),
		"This isn’t an e-mail address":   v.filled("nobody", "title", "x", "text", "My words"),
		"Please write a text":            v.filled(v.address("ada"), "title", "x", "text", "My words"+strings.Repeat("x", 10_000)),
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
	stamp := stampOf(form)
	stampOfForm := func(at time.Duration) string {
		return v.App.PublicActions.Stamp(v.at+"/dark-mode/-/vote", time.Now().Add(at))
	}
	another := v.App.PublicActions.Stamp(v.at+"/-/new", time.Now().Add(-time.Minute))
	for _, s := range []string{stamp, "", "x", stamp[1:], stampOfForm(-25 * time.Hour), stampOfForm(time.Hour), another} {
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
		require.Eventually(t, func() bool { return len(v.letters(t, v.address(name))) == 4 }, testkit.Wait, testkit.Tick)
	}
	// The excess requests are removed without a mail.
	require.Eventually(t, func() bool { return v.left(t) == 8 }, testkit.Wait, testkit.Tick)
	require.Len(t, v.letters(t, v.address("known")), 4, "one network gets no more")
}

func closedForNow(t *testing.T, v *visitor) {
	post := v.post(t, "Dark mode", nil)
	at := v.at + "/dark-mode"
	v.fill(t, at+"/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	closed, open := true, false
	v.operate(t, access.OrganizationPatch{PublicClosed: &closed})
	require.Eventually(t, func() bool { return v.read(t, at).link("Vote for this") == "" }, testkit.Wait, testkit.Tick)
	require.Eventually(t, func() bool { return v.read(t, v.at).link("Write a post") == "" }, testkit.Wait, testkit.Tick)
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
	post := v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	v.public2(t)
	v.Patch(t, v.board, object{"public": false})
	v.Patch(t, "/v1/posts/"+post, object{"title": "Secret acquisition"})
	shown := v.do(t, http.MethodGet, link, nil)
	require.Equal(t, http.StatusGone, shown.StatusCode)
	require.NotContains(t, shown.body, "Secret acquisition")
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

func TestAnEndUserHasToWaitAfterTooManyForms(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, published.Start(t).Tenant(t))
	v.post(t, "Dark mode", nil)
	for range 60 {
		v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("bot"), "topic", "x"))
	}
	a := v.do(t, http.MethodPost, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	// On a slow machine a token may have flowed in meanwhile.
	for range 10 {
		if a.StatusCode == http.StatusTooManyRequests {
			break
		}
		a = v.do(t, http.MethodPost, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	}
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")), "X-Forwarded-For", "203.0.113.8")
}

func TestLinksLeadWhereTheOperatorSaysAndNowhereElse(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, published.Start(t).Tenant(t))
	v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")), "X-Forwarded-Host", "evil.example")
	require.Eventually(t, func() bool { return len(v.letters(t, v.address("ada"))) == 1 }, testkit.Wait, testkit.Tick)
	text, err := io.ReadAll(quotedprintable.NewReader(v.letters(t, v.address("ada"))[0].Body))
	require.NoError(t, err)
	token := regexp.MustCompile(`https://feedback\.example\.com` + v.home + `/-/confirm\?token=(\S+)`).FindStringSubmatch(string(text))
	require.NotNil(t, token, string(text))
	done := v.do(t, http.MethodPost, v.home+"/-/confirm", url.Values{"token": {token[1]}})
	require.Equal(t, http.StatusSeeOther, done.StatusCode)
	require.True(t, done.Cookies()[0].Secure)
}

// foreignHost calls a service without a public origin by a forged host name.
func foreignHost(t *testing.T, v *visitor) {
	v.post(t, "Dark mode", nil)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r, err := http.NewRequestWithContext(t.Context(), method, v.App.URL+v.at+"/dark-mode/-/vote", strings.NewReader(v.filled(v.address("ada")).Encode()))
		require.NoError(t, err)
		r.Host = "evil.example"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusForbidden, answer.StatusCode)
	}
	require.Zero(t, v.left(t))
}
