package web_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"earshot/internal/access"
	"earshot/internal/testkit/apptest"
	"earshot/web"
	"earshot/worker"
)

func TestMain(m *testing.M) {
	apptest.Main(m, apptest.WithParts(web.Module), apptest.WithWorker(worker.Module))
}

type object = map[string]any

// tenant is an organization with a public board.
type tenant struct {
	*apptest.Tenant
	slug string
	// board is the board's path in the API. home and at are the paths of the organization's and the
	// board's page.
	board, home, at string
	// network is the address of all visitors behind a proxy.
	network string
}

// networks counts the addresses of tenants.
var networks atomic.Uint32

// newTenant wraps an organization. Behind a proxy, its visitors have an address of their own, from the range for
// benchmarks (RFC 2544).
func newTenant(n *apptest.Tenant) *tenant {
	made := &tenant{Tenant: n}
	if i := networks.Add(1); len(n.App.Config.TrustedProxies) > 0 {
		made.network = fmt.Sprintf("198.18.%d.%d", i>>8, i&0xff)
	}
	return made
}

func together(t *testing.T, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	apptest.Together(t, apptest.Start(t, apptest.Options{}), func(_ *testing.T, n *apptest.Tenant) *tenant { return newTenant(n) }, tests)
}

// public gives the organization a slug and a public board.
func (n *tenant) public(t *testing.T) *tenant {
	t.Helper()
	n.slug = strings.ReplaceAll(n.Organization.ID.String(), "_", "-")
	n.operate(t, access.OrganizationPatch{Slug: &n.slug})
	n.board = "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Ideas", "description": "What shall we build?", "public": true})
	n.home = "/b/" + n.slug
	n.at = n.home + "/ideas"
	return n
}

func (n *tenant) operate(t *testing.T, in access.OrganizationPatch) {
	t.Helper()
	_, err := n.App.Access.ArrangeOrganization(n.Context(t.Context()), in)
	require.NoError(t, err)
}

// other makes another organization with a public board.
func (n *tenant) other(t *testing.T) *tenant {
	t.Helper()
	return newTenant(n.App.Tenant(t)).public(t)
}

func (n *tenant) post(t *testing.T, title string, more object) string {
	t.Helper()
	id := n.ID(t, n.board+"/posts", object{"title": title})
	if more != nil {
		n.Patch(t, "/v1/posts/"+id, more)
	}
	return id
}

// answered is the answer to a reader without a key.
type answered struct {
	*http.Response
	body string
}

// forward does what the proxy does.
func (n *tenant) forward(r *http.Request) {
	if n.network != "" {
		r.Header.Set("X-Forwarded-For", n.network)
	}
}

func (n *tenant) ask(t *testing.T, method, path string, header ...string) answered {
	t.Helper()
	return n.sent(t, method, path, "", header...)
}

// sent is ask with a body. A header with an empty value is not sent.
func (n *tenant) sent(t *testing.T, method, path, text string, header ...string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.App.URL+path, strings.NewReader(text))
	require.NoError(t, err)
	n.forward(r)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answered{answer, string(body)}
}

// read requires that a page exists, and returns it as a first-time reader gets it.
func (n *tenant) read(t *testing.T, path string, header ...string) answered {
	t.Helper()
	a := n.ask(t, http.MethodGet, path, header...)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", path, a.body)
	return a
}

var blank = regexp.MustCompile(`\s+`)

// text returns the visible text of a page.
func (a answered) text(t *testing.T) string {
	t.Helper()
	var all []string
	for tokens := html.NewTokenizer(strings.NewReader(a.body)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(blank.ReplaceAllString(strings.Join(all, " "), " "))
		case html.TextToken:
			all = append(all, string(tokens.Text()))
		}
	}
}

var linkTo = regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>([^<]*)</a>`)

// link returns the target of the link with these words; "" if there is none.
func (a answered) link(words string) string {
	for _, m := range linkTo.FindAllStringSubmatch(a.body, -1) {
		if html.UnescapeString(m[2]) == words {
			return html.UnescapeString(m[1])
		}
	}
	return ""
}

// titles returns the titles of the posts in a list, in order.
func (a answered) titles() (all []string) {
	for _, m := range regexp.MustCompile(`<h3><a href="[^"]*"[^>]*>([^<]*)</a></h3>`).FindAllStringSubmatch(a.body, -1) {
		all = append(all, html.UnescapeString(m[1]))
	}
	return all
}

func decodeXML(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, xml.Unmarshal([]byte(text), into), "%s", text)
}
