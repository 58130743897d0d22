package web_test

import (
	"bytes"
	"cmp"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// reader is a visitor who has received an e-mail.
type reader struct {
	*visitor
	email, contact string
	// unsubscribe and preferences are the paths in the e-mail.
	unsubscribe, preferences string
}

// newReader makes an organization with a reader.
func newReader(t *testing.T, n *apptest.Tenant) *reader {
	t.Helper()
	r := &reader{visitor: &visitor{tenant: newTenant(n)}}
	on := true
	updated, err := n.App.Access.ArrangeOrganization(r.Context(t.Context()), access.OrganizationPatch{SubscriberMails: &on, SubscriberMailsAllowed: &on})
	require.NoError(t, err)
	r.Organization = updated.Organization
	r.public(t)
	r.email = r.address("quentin")
	r.isTold(t, r.optsIn(t), 1)
	r.contact = r.contactsWith(t, r.email)[0].(object)["id"].(string)
	return r
}

// optsIn votes for a new post and opts in.
func (r *reader) optsIn(t *testing.T) (post string) {
	t.Helper()
	post = r.post(t, "Dark mode", nil)
	ctx := change.WithCaller(t.Context(), &change.Caller{Organization: r.Organization})
	_, err := r.App.PublicActions.Act(ctx, publicactions.Sender{Email: r.email, Name: "Quentin"},
		publicactions.Wanted{Kind: publicactions.Vote, Post: publicid.Read[publicid.Post](post), OptIn: true, Language: "en"}, "")
	require.NoError(t, err)
	return post
}

// moves changes the status, lets ten minutes pass, and returns after all e-mails were sent.
func (r *reader) moves(t *testing.T, post string) {
	t.Helper()
	r.Make(t, http.MethodPatch, "/v1/posts/"+post, object{"status": "planned"})
	of, run := r.Organization.ID.UUID().String(), r.Organization.ID.String()
	var n int
	r.query(t, `WITH u AS (UPDATE subscriber_updates SET created_at = created_at - interval '11 minutes' WHERE organization_id = $1 RETURNING 1)
		SELECT count(*) FROM u`, &n, of)
	require.Equal(t, 1, n)
	require.Eventually(t, func() bool {
		// A run that looked after the ten minutes has already ended and takes no signal.
		_ = r.App.Temporal.SignalWorkflow(t.Context(), run, "", workflows.UpdatedSignal, nil)
		r.query(t, `SELECT (SELECT count(*) FROM subscriber_updates WHERE organization_id = $1)
			+ (SELECT count(*) FROM subscriber_mails WHERE organization_id = $1)`, &n, of)
		return n == 0
	}, testkit.Wait, testkit.Tick)
}

// isTold moves the post and requires the given number of e-mails in the mailbox.
func (r *reader) isTold(t *testing.T, post string, wanted int) {
	t.Helper()
	r.moves(t, post)
	found := r.letters(t, r.email)
	require.Len(t, found, wanted)
	if wanted == 0 {
		return
	}
	link := found[wanted-1].Header.Get("List-Unsubscribe")
	r.unsubscribe = strings.TrimSuffix(strings.TrimPrefix(link, "<"+mailOrigin), ">")
	r.preferences = strings.Replace(r.unsubscribe, "/-/unsubscribe?", "/-/preferences?", 1)
}

func (r *reader) choose(t *testing.T, form url.Values) answered {
	t.Helper()
	at, err := url.Parse(r.preferences)
	require.NoError(t, err)
	form.Set("token", at.Query().Get("token"))
	return r.do(t, http.MethodPost, at.Path, form)
}

// subscriber returns the reader as the API shows it.
func (r *reader) subscriber(t *testing.T) object {
	t.Helper()
	found := r.Do(t, http.MethodGet, "/v1/subscribers", nil).Body["data"].([]any)
	require.Len(t, found, 1)
	return found[0].(object)
}

func TestReadersManageTheirEMailPreferences(t *testing.T) {
	t.Parallel()
	apptest.Together(t, published.Start(t), newReader, map[string]func(*testing.T, *reader){
		"one click ends them, from wherever it comes":                  oneClick,
		"following a link changes nothing":                             followed,
		"a choice holds, and can be taken back":                        chosen,
		"a link of an unknown or deleted contact shows a notice":       nobodyThere,
		"a reader who unsubscribes and comes back gets no e-mails":     comesBack,
		"a choice follows the contact to another address":              otherAddress,
		"an erasure keeps that somebody wants nothing and no more":     erased,
		"a link in an e-mail that was used lifts a suppression":        optsInAgain,
		"an approval doesn't undo a later choice":                      approvedLater,
		"a link ends e-mails to the address, also for a later contact": laterContact,
	})
}

func oneClick(t *testing.T, r *reader) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.App.URL+r.unsubscribe, strings.NewReader("List-Unsubscribe=One-Click"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", "https://mail.example.net")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	require.Contains(t, string(text), "You get no more e-mails")
	require.Empty(t, answer.Cookies())
	require.Equal(t, false, r.subscriber(t)["statusUpdates"])
	r.isTold(t, r.post2(t), 1)

	// RFC 8058 also allows a multipart body. Other sites can't post to the page with the choices.
	body := "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n"
	multi, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.App.URL+r.unsubscribe, bytes.NewBufferString(body))
	require.NoError(t, err)
	multi.Header.Set("Content-Type", `multipart/form-data; boundary=x`)
	again, err := http.DefaultTransport.RoundTrip(multi)
	require.NoError(t, err)
	require.NoError(t, again.Body.Close())
	require.Equal(t, http.StatusOK, again.StatusCode)
	crossed := r.do(t, http.MethodPost, r.home+"/-/preferences", url.Values{"statusUpdates": {"1"}}, "Origin", "https://evil.test")
	require.Equal(t, http.StatusForbidden, crossed.StatusCode)
}

// post2 is a post that the reader has voted for without a new choice.
func (r *reader) post2(t *testing.T) string {
	t.Helper()
	post := r.post(t, "Darker mode", nil)
	r.Make(t, http.MethodPost, "/v1/posts/"+post+"/votes", object{"contactId": r.contact})
	return post
}

func followed(t *testing.T, r *reader) {
	for _, path := range []string{r.unsubscribe, r.preferences} {
		a := r.do(t, http.MethodGet, path, nil, "Accept-Language", "de")
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Contains(t, a.body, "Ihre E-Mail-Einstellungen")
		require.Equal(t, "private, no-store", a.Header.Get("Cache-Control"))
		require.NotContains(t, a.body, r.email, "whoever has the link learns nothing of the person")
		require.Regexp(t, `name="statusUpdates" value="1" checked>`, a.body)
		require.NotRegexp(t, `name="changelog" value="1" checked>`, a.body)
	}
	require.Equal(t, object{"contactId": r.contact, "statusUpdates": true, "changelog": false, "suppressed": false, "updatedAt": r.subscriber(t)["updatedAt"]}, r.subscriber(t))
}

func chosen(t *testing.T, r *reader) {
	a := r.choose(t, url.Values{"changelog": {"1"}})
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Contains(t, a.body, "Your settings are saved")
	require.Equal(t, []any{false, true}, []any{r.subscriber(t)["statusUpdates"], r.subscriber(t)["changelog"]})
	post := r.post2(t)
	r.isTold(t, post, 1)
	require.Equal(t, http.StatusOK, r.choose(t, url.Values{"statusUpdates": {"1"}, "nothing": {"1"}}).StatusCode)
	require.Equal(t, []any{false, false}, []any{r.subscriber(t)["statusUpdates"], r.subscriber(t)["changelog"]})
	require.Equal(t, http.StatusOK, r.choose(t, url.Values{"statusUpdates": {"1"}}).StatusCode)
	r.isTold(t, r.post2(t), 2)
}

func nobodyThere(t *testing.T, r *reader) {
	for _, token := range []string{"", "x", strings.Repeat("A", 64), "AAAA" + r.preferences[len(r.preferences)-60:]} {
		a := r.do(t, http.MethodGet, r.home+"/-/preferences?token="+token, nil)
		require.Equal(t, http.StatusGone, a.StatusCode, token)
		require.Equal(t, http.StatusGone, r.do(t, http.MethodPost, r.home+"/-/unsubscribe?token="+token, url.Values{}).StatusCode)
	}
	require.Equal(t, http.StatusOK, r.Do(t, http.MethodDelete, "/v1/contacts/"+r.contact, nil).Status)
	require.Equal(t, http.StatusGone, r.do(t, http.MethodGet, r.preferences, nil).StatusCode)
	require.Equal(t, http.StatusGone, r.choose(t, url.Values{"statusUpdates": {"1"}}).StatusCode)
}

func comesBack(t *testing.T, r *reader) {
	require.Equal(t, http.StatusOK, r.do(t, http.MethodPost, r.unsubscribe, url.Values{}).StatusCode)
	require.Equal(t, http.StatusOK, r.Do(t, http.MethodDelete, "/v1/contacts/"+r.contact, nil).Status)
	back := r.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "q-1", "email": r.email})
	r.contact = back["id"].(string)
	r.isTold(t, r.post2(t), 1)
	// A new tick in the box subscribes the reader again.
	r.moves(t, r.optsIn(t))
	require.Len(t, r.letters(t, r.email), 2)
}

func otherAddress(t *testing.T, r *reader) {
	require.Equal(t, http.StatusOK, r.do(t, http.MethodPost, r.unsubscribe, url.Values{}).StatusCode)
	other := r.address("other")
	r.Make(t, http.MethodPatch, "/v1/contacts/"+r.contact, object{"email": other})
	r.moves(t, r.post2(t))
	require.Empty(t, r.letters(t, other))
	require.Equal(t, http.StatusGone, r.do(t, http.MethodGet, r.preferences, nil).StatusCode, "the mailbox of before may be somebody else's")
}

func erased(t *testing.T, r *reader) {
	of := r.Organization.ID.UUID().String()
	count := func() (n int) {
		r.query(t, "SELECT count(*) FROM subscriptions WHERE organization_id = $1", &n, of)
		return n
	}
	require.Equal(t, 1, count())
	require.Less(t, r.Do(t, http.MethodPost, "/v1/contacts/"+r.contact+"/erase", object{}).Status, 300)
	require.Zero(t, count(), "what somebody wished goes with them")
	r.moves(t, r.optsIn(t))
	require.Len(t, r.letters(t, r.email), 2)
	r.contact = r.contactsWith(t, r.email)[0].(object)["id"].(string)
	last := r.letters(t, r.email)
	for _, m := range last {
		path := strings.TrimSuffix(strings.TrimPrefix(m.Header.Get("List-Unsubscribe"), "<"+mailOrigin), ">")
		r.do(t, http.MethodPost, path, url.Values{})
	}
	require.Less(t, r.Do(t, http.MethodPost, "/v1/contacts/"+r.contact+"/erase", object{}).Status, 300)
	require.Equal(t, 1, count(), "that somebody wants nothing is kept, by the hash alone")
}

func optsInAgain(t *testing.T, r *reader) {
	_, err := r.App.Subscribers.Bounced(t.Context(), []string{r.email})
	require.NoError(t, err)
	require.Equal(t, true, r.subscriber(t)["suppressed"])
	r.isTold(t, r.post2(t), 1)
	r.moves(t, r.optsIn(t))
	require.Equal(t, true, r.subscriber(t)["suppressed"], "a cookie says nothing of the mailbox")
	r.post(t, "Darkest mode", nil)
	r.cookie = nil
	r.fill(t, r.at+"/darkest-mode/-/vote", r.filled(r.email))
	var link string
	require.Eventually(t, func() bool {
		for _, m := range r.letters(t, r.email) {
			text, _ := io.ReadAll(quotedprintable.NewReader(m.Body)) // the other e-mails have several parts
			link = cmp.Or(linkInMail.FindString(string(text)), link)
		}
		return link != ""
	}, testkit.Wait, testkit.Tick)
	at, err := url.Parse(link)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.pressWith(t, at.RequestURI(), true).StatusCode)
	require.Equal(t, false, r.subscriber(t)["suppressed"])
}

func approvedLater(t *testing.T, r *reader) {
	r.Patch(t, r.board, object{"moderated": true})
	done, err := r.App.PublicActions.Act(change.WithCaller(t.Context(), &change.Caller{Organization: r.Organization}),
		publicactions.Sender{Email: r.email, Name: "Quentin"},
		publicactions.Wanted{Kind: publicactions.Post, Board: publicid.Read[publicid.Board](strings.TrimPrefix(r.board, "/v1/boards/")), Title: "Purple", OptIn: true, Language: "en"}, "")
	require.NoError(t, err)
	require.True(t, done.Waits)
	require.Equal(t, http.StatusOK, r.do(t, http.MethodPost, r.unsubscribe, url.Values{}).StatusCode)
	waiting := r.Do(t, http.MethodGet, "/v1/submissions", nil).Body["data"].([]any)
	require.Len(t, waiting, 1)
	r.Make(t, http.MethodPost, "/v1/submissions/"+waiting[0].(object)["id"].(string)+"/approve", nil)
	require.Equal(t, false, r.subscriber(t)["statusUpdates"])
}

// laterContact unsubscribes by the link of a deleted contact. A new contact has the same address.
func laterContact(t *testing.T, r *reader) {
	require.Equal(t, http.StatusOK, r.Do(t, http.MethodDelete, "/v1/contacts/"+r.contact, nil).Status)
	r.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "q-2", "email": r.email})
	require.Equal(t, http.StatusOK, r.do(t, http.MethodPost, r.unsubscribe, url.Values{}).StatusCode)
	require.Equal(t, false, r.subscriber(t)["statusUpdates"])
}
