package workflows_test

import (
	"context"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

type fields = map[string]any

// mailedTenant is an organization that e-mails its end-users about changes to their requests.
type mailedTenant struct {
	*apptest.Tenant
	app         *apptest.App
	board, post string
	ctx         context.Context
}

const origin = "https://feedback.example.com"

// mailing starts a service for one test that writes e-mails to a directory.
func mailing(t *testing.T, o apptest.Options) *apptest.App {
	t.Helper()
	o.Environ = append([]string{"EARSHOT_MAIL_DIR=" + t.TempDir(), "EARSHOT_PUBLIC_ORIGIN=" + origin}, o.Environ...)
	return apptest.Start(t, o)
}

func newMailedTenant(t *testing.T, app *apptest.App) *mailedTenant {
	t.Helper()
	p := &mailedTenant{app: app, Tenant: app.Tenant(t)}
	on, slug, color := true, "acme-"+strings.ToLower(p.Organization.ID.String()[20:]), "#ff8800"
	updated, err := p.app.Access.ArrangeOrganization(p.Context(t.Context()),
		access.OrganizationPatch{SubscriberMails: &on, SubscriberMailsAllowed: &on, Slug: &slug, Color: &color})
	require.NoError(t, err)
	p.Organization = updated.Organization
	p.ctx = change.WithCaller(t.Context(), &change.Caller{Organization: p.Organization})
	p.board = p.ID(t, "/v1/boards", fields{"name": "Ideas", "public": true})
	p.post = p.newPost(t, fields{"title": "Dark mode"})
	return p
}

func (p *mailedTenant) newPost(t *testing.T, with fields) string {
	t.Helper()
	return p.ID(t, "/v1/boards/"+p.board+"/posts", with)
}

// votes adds a visitor's vote on a public board, with the opt-in box ticked and in the page's
// language.
func (p *mailedTenant) votes(t *testing.T, email, post, language string) {
	t.Helper()
	p.acts(t, email, publicactions.Wanted{Kind: publicactions.Vote, Post: publicid.Read[publicid.Post](post), OptIn: true, Language: language})
}

func (p *mailedTenant) acts(t *testing.T, email string, w publicactions.Wanted) {
	t.Helper()
	_, err := p.app.PublicActions.Act(p.ctx, publicactions.Sender{Email: email, Name: "Quentin"}, w, "")
	require.NoError(t, err)
}

func (p *mailedTenant) moves(t *testing.T, post, status string) {
	t.Helper()
	p.Make(t, http.MethodPatch, "/v1/posts/"+post, fields{"status": status})
}

// query reads one row. $1 is the organization.
func (p *mailedTenant) query(t *testing.T, sql string, into ...any) {
	t.Helper()
	require.NoError(t, p.app.Pool.QueryRow(t.Context(), sql, p.Organization.ID.UUID()).Scan(into...))
}

// run changes rows. $1 is the organization.
func (p *mailedTenant) run(t *testing.T, sql string) {
	t.Helper()
	_, err := p.app.Pool.Exec(t.Context(), sql, p.Organization.ID.UUID())
	require.NoError(t, err)
}

// passes moves all updates back by more than the ten minutes of the window.
func (p *mailedTenant) passes(t *testing.T) {
	t.Helper()
	p.run(t, "UPDATE subscriber_updates SET created_at = created_at - interval '11 minutes' WHERE organization_id = $1")
	p.looks(t)
}

// looks makes the run look at the rows immediately.
func (p *mailedTenant) looks(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		// A run that looked after the ten minutes has already ended, and accepts no signal.
		return p.app.Temporal.SignalWorkflow(t.Context(), p.Organization.ID.String(), "", workflows.UpdatedSignal, nil) == nil || p.left(t) == 0
	}, testkit.Wait, testkit.Tick)
}

// isTold returns when all e-mails are handled and the run has ended.
func (p *mailedTenant) isTold(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return p.left(t) == 0 }, testkit.Wait, testkit.Tick)
	require.NoError(t, p.app.Temporal.GetWorkflow(t.Context(), p.Organization.ID.String(), "").Get(t.Context(), nil))
}

func (p *mailedTenant) left(t *testing.T) (n int) {
	t.Helper()
	p.query(t, `SELECT (SELECT count(*) FROM subscriber_updates WHERE organization_id = $1)
		+ (SELECT count(*) FROM subscriber_mails WHERE organization_id = $1)`, &n)
	return n
}

// letter is a parsed e-mail.
type letter struct {
	mail.Header
	raw, text, html string
}

// mailsWith returns the e-mails of the service that contain a text. Other tests add and remove e-mails meanwhile.
func mailsWith(t *testing.T, app *apptest.App, text string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(app.Config.MailDir, "*.eml"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		if strings.Contains(string(raw), text) {
			all = append(all, string(raw))
		}
	}
	return all
}

// letters returns the e-mails of the organization in the mailbox, by address.
func (p *mailedTenant) letters(t *testing.T) map[string][]letter {
	t.Helper()
	all := map[string][]letter{}
	for _, raw := range mailsWith(t, p.app, "/b/"+p.Organization.ID.String()+"/-/unsubscribe") {
		l := readLetter(t, raw)
		to, err := l.AddressList("To")
		require.NoError(t, err)
		all[to[0].Address] = append(all[to[0].Address], l)
	}
	return all
}

func readLetter(t *testing.T, raw string) letter {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	require.NoError(t, err)
	l := letter{Header: m.Header, raw: raw}
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", media)
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return l
		}
		require.NoError(t, err)
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		require.NoError(t, err)
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			l.html = string(body)
		} else {
			l.text = string(body)
		}
	}
}

func (l letter) subject(t *testing.T) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(l.Get("Subject"))
	require.NoError(t, err)
	return text
}

var unsubscribePattern = regexp.MustCompile(`^<` + regexp.QuoteMeta(origin) + `(/b/[^/]+/-/unsubscribe\?token=[A-Za-z0-9_-]+)>$`)

// unsubscribe returns the unsubscribe path in the e-mail.
func (l letter) unsubscribe(t *testing.T) string {
	t.Helper()
	require.Equal(t, "List-Unsubscribe=One-Click", l.Get("List-Unsubscribe-Post"))
	found := unsubscribePattern.FindStringSubmatch(l.Get("List-Unsubscribe"))
	require.NotNil(t, found, l.Get("List-Unsubscribe"))
	return found[1]
}
