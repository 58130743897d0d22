// Package web makes the pages on which everybody reads public boards: boards, posts, roadmaps
// and changelogs, on the server, without a build step, usable without scripts. It calls the use
// cases as api does, and knows no SQL and no Temporal. README.md states the rules.
package web

import (
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/access"
	"earshot/internal/feedback"
	"earshot/internal/interactions"
	"earshot/internal/memory"
	"earshot/internal/page"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/tokenbucket"
	"earshot/internal/widget"
	"earshot/web/messages"
	"earshot/web/pagecache"
)

// Root is the path that all pages of boards are below.
const Root = "/b/"

// Options of the pages.
type Options struct {
	// PublicOrigin is where readers find the service, without a slash at its end. Where it is
	// empty it is where a request says that it was sent.
	PublicOrigin string
	// Slots is how many pages are made at once.
	Slots int
	// Wait is how long a request waits for one of them; 0 is two seconds.
	Wait time.Duration
	// Network is where a request comes from, by which limits go.
	Network func(*http.Request) netip.Prefix
	Meter   telemetry.Meter
	Log     *slog.Logger
}

// UseCases are what the pages show.
type UseCases struct {
	Access       *access.Service
	Feedback     *feedback.Service
	Interactions *interactions.Service
	Subscribers  *subscribers.Service
	Widget       *widget.Service
}

// Pages serves them.
type Pages struct {
	UseCases
	publicOrigin string
	texts        []*texts
	boardCache
	cache   *pagecache.Cache[*answer]
	acting  *pagecache.Cache[*answer]
	lookers *tokenbucket.Buckets[netip.Prefix]
	network func(*http.Request) netip.Prefix
	// answers bounds what large pages take, apart from the answers of the API: readers must not
	// keep its callers waiting.
	answers *page.Memory
	log     *slog.Logger
	mux     http.Handler
	// protection refuses what other sites have a browser send.
	protection *http.CrossOriginProtection
}

// New makes them.
func New(u UseCases, o Options) (*Pages, error) {
	p := &Pages{
		UseCases: u, publicOrigin: strings.TrimSuffix(o.PublicOrigin, "/"), log: o.Log,
		boardCache: newBoardCache(), cache: newCache(o), network: o.Network,
		answers:    page.NewMemoryOf(memory.Pages - pagecache.MaxKept - maxWorkspaces - maxBoards),
		protection: http.NewCrossOriginProtection(),
	}
	p.acting, p.lookers = p.cache.ForActs(), tokenbucket.New[netip.Prefix](looksOfNetwork)
	for _, tag := range messages.Languages {
		t, err := loadTexts(tag)
		if err != nil {
			return nil, err
		}
		p.texts = append(p.texts, t)
	}
	mux := http.NewServeMux()
	for pattern, produce := range p.routes() {
		mux.Handle("GET "+pattern, p.serve(produce))
	}
	mux.Handle("GET "+Root+"{workspace}/{board}/{post}", p.mayKnow(p.post))
	for pattern, do := range p.actors() {
		mux.Handle(pattern, p.acts(do))
	}
	mux.Handle("POST "+unsubscribePath, p.acts(p.unsubscribe))
	mux.HandleFunc("GET /robots.txt", robots)
	mux.HandleFunc("GET "+Root+"-/{file}", serveStatic)
	mux.HandleFunc("GET "+Root+"-/colors/{file}", serveColors)
	mux.Handle("GET /", p.serve(nothing))
	if p.publicOrigin != "" {
		if err := p.protection.AddTrustedOrigin(p.publicOrigin); err != nil {
			return nil, errors.Wrap(err, "trust the pages' own origin")
		}
	}
	// Programs of mail post here for their users, from wherever these read their mail. The token in the
	// address says who, and nothing of a browser counts.
	p.protection.AddInsecureBypassPattern("POST " + unsubscribePath)
	p.mux = p.protection.Handler(mux)
	return p, nil
}

// routes are the pages of organizations, by their paths. No slug is a hyphen, so what stands
// behind one is no board or post.
func (p *Pages) routes() map[string]maker {
	return map[string]maker{
		Root + "{workspace}":                                   p.workspace,
		Root + "{workspace}/-/logo":                            p.logo,
		Root + "{workspace}/-/sent":                            p.sent,
		Root + "{workspace}/-/waits":                           p.waits,
		Root + "{workspace}/-/image.png":                       p.workspaceImage,
		Root + "{workspace}/-/sitemap.xml":                     p.workspaceSitemap,
		Root + "{workspace}/{board}":                           p.board,
		Root + "{workspace}/{board}/-/roadmap":                 p.roadmap,
		Root + "{workspace}/{board}/-/changelog":               p.changelog,
		Root + "{workspace}/{board}/-/changelog/{entry}":       p.entry,
		Root + "{workspace}/{board}/-/changelog.atom":          p.feed,
		Root + "{workspace}/{board}/-/image.png":               p.boardImage,
		Root + "{workspace}/{board}/-/sitemap.xml":             p.boardSitemap,
		Root + "{workspace}/{board}/{post}/image.png":          p.postImage,
		Root + "{workspace}/{board}/{post}/-/confirmed/{kind}": p.confirmed,
	}
}

// actors are what end-users do, by method and path.
func (p *Pages) actors() map[string]actor {
	all := map[string]actor{
		"GET " + Root + "{workspace}/-/confirm":                p.link,
		"POST " + Root + "{workspace}/-/confirm":               p.confirm,
		"POST " + Root + "{workspace}/-/forget":                p.forget,
		"GET " + Root + "{workspace}/-/preferences":            p.preferences,
		"POST " + Root + "{workspace}/-/preferences":           p.choose,
		"GET " + unsubscribePath:                               p.preferences,
		"POST " + Root + "{workspace}/{board}/{post}/-/unvote": p.unvote,
	}
	for path, kind := range forms(Root) {
		maps.Copy(all, map[string]actor{"GET " + path: p.form(kind), "POST " + path: p.submit(kind)})
	}
	return all
}

// ServeHTTP serves a page. Addresses have no slash at their end.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	// Reading must not change what a cache keeps for the next reader.
	header.Set("Cache-Control", "no-cache")
	if path := r.URL.Path; reads(r) && strings.HasPrefix(path, Root) && len(path) > len(Root) && strings.HasSuffix(path, "/") {
		to := *r.URL
		to.Path, to.RawPath = strings.TrimRight(path, "/"), ""
		http.Redirect(w, r, to.RequestURI(), http.StatusMovedPermanently) //nolint:gosec // a path below Root
		return
	}
	p.mux.ServeHTTP(w, r)
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// policy lets a page have its own styles, pictures and module, and nothing that somebody might
// bring into it. Scripts can't make HTML of texts.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// robots keeps crawlers from what isn't for them. Pages that aren't public don't exist for them,
// as for everybody.
func robots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("User-agent: *\nAllow: " + Root + "\nDisallow: /\n"))
}
