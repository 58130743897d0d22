// Package web renders the public pages: boards, posts, roadmaps and changelogs. They are rendered
// on the server, need no build step and work without scripts. The package calls the use cases as
// api does, and contains no SQL and no Temporal code. README.md states the rules.
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
	"earshot/internal/memory"
	"earshot/internal/page"
	"earshot/internal/publicactions"
	"earshot/internal/ratelimit"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/widget"
	"earshot/web/markup"
	"earshot/web/messages"
	"earshot/web/pagecache"
)

// Root is the path prefix of all pages of boards.
const Root = "/b/"

// Options configure the pages.
type Options struct {
	// PublicOrigin is the address at which readers find the service, without a trailing slash. If
	// it is empty, the Host header of each request replaces it.
	PublicOrigin string
	// Slots is the number of pages that are rendered at the same time.
	Slots int
	// Wait is how long a request waits for a slot; 0 means two seconds.
	Wait time.Duration
	// Network returns the client network of a request. Rate limits are per network.
	Network func(*http.Request) netip.Prefix
	Meter   telemetry.Meter
	Log     *slog.Logger
}

// UseCases are the services that the pages call.
type UseCases struct {
	Access        *access.Service
	Feedback      *feedback.Service
	PublicActions *publicactions.Service
	Subscribers   *subscribers.Service
	Widget        *widget.Service
}

// Pages serves the public pages.
type Pages struct {
	UseCases
	publicOrigin string
	texts        []*texts
	boardCache
	// cache has the slots for readers, acting those for visitors who act, and links those for links
	// in e-mails.
	cache, acting, links *pagecache.Cache[*answer]
	// lookers limits the views of visitors who act, and followers the requests for links in e-mails.
	lookers, followers *ratelimit.Buckets[netip.Prefix]
	network            func(*http.Request) netip.Prefix
	converted          *markup.Converted
	// answers bounds the memory of large pages. It is separate from the API's, so that readers
	// never delay clients of the API.
	answers *page.Memory
	log     *slog.Logger
	mux     http.Handler
	// protection refuses requests that other sites make a browser send.
	protection *http.CrossOriginProtection
}

// New makes the pages.
func New(u UseCases, o Options) (*Pages, error) {
	p := &Pages{
		UseCases: u, publicOrigin: strings.TrimSuffix(o.PublicOrigin, "/"), log: o.Log,
		boardCache: newBoardCache(), cache: newCache(o), network: o.Network, converted: markup.NewConverted(),
		answers:    page.NewMemoryOf(memory.Pages - pagecache.MaxKept - markup.MaxKept - maxWorkspaces - maxBoards - maxNames),
		protection: http.NewCrossOriginProtection(),
	}
	p.acting, p.links = p.cache.Apart(), p.cache.Apart()
	p.lookers, p.followers = ratelimit.NewBuckets[netip.Prefix](looksOfNetwork), ratelimit.NewBuckets[netip.Prefix](linksOfNetwork)
	for _, tag := range messages.Languages {
		t, err := loadTexts(tag)
		if err != nil {
			return nil, err
		}
		p.texts = append(p.texts, t)
	}
	mux := http.NewServeMux()
	for pattern, one := range p.routes() {
		mux.Handle("GET "+pattern, p.serve(one.produce, one.parameters...))
	}
	mux.Handle("GET "+Root+"{workspace}/{board}/{post}", p.mayKnow(p.post, onlyPage...))
	for pattern, do := range p.actors() {
		mux.Handle(pattern, p.acts(do))
	}
	for pattern, do := range p.mailLinks() {
		mux.Handle(pattern, p.mailed(do))
	}
	mux.HandleFunc("GET /robots.txt", robots)
	mux.HandleFunc("GET "+Root+"-/{file}", serveStatic)
	mux.HandleFunc("GET "+Root+"-/colors/{file}", serveColors)
	mux.Handle("GET /", p.serve(nothing))
	if p.publicOrigin != "" {
		if err := p.protection.AddTrustedOrigin(p.publicOrigin); err != nil {
			return nil, errors.Wrap(err, "trust the pages' own origin")
		}
	}
	// Mail programs post here from any site. The token in the address identifies the subscriber,
	// and the browser's state plays no part.
	p.protection.AddInsecureBypassPattern("POST " + unsubscribePath)
	p.mux = p.protection.Handler(mux)
	return p, nil
}

// route is a page with the parameters that it reads.
type route struct {
	produce    maker
	parameters []string
}

// routes maps paths to pages. No slug is a hyphen, so a path with "/-/" is no board and no post.
func (p *Pages) routes() map[string]route {
	return map[string]route{
		Root + "{workspace}":                                   {produce: p.workspace, parameters: onlyPage},
		Root + "{workspace}/-/logo":                            {produce: p.logo},
		Root + "{workspace}/-/sent":                            {produce: p.sent},
		Root + "{workspace}/-/waits":                           {produce: p.waits},
		Root + "{workspace}/-/image.png":                       {produce: p.workspaceImage},
		Root + "{workspace}/-/sitemap.xml":                     {produce: p.workspaceSitemap},
		Root + "{workspace}/{board}":                           {produce: p.board, parameters: filters},
		Root + "{workspace}/{board}/-/roadmap":                 {produce: p.roadmap},
		Root + "{workspace}/{board}/-/changelog":               {produce: p.changelog, parameters: onlyPage},
		Root + "{workspace}/{board}/-/changelog/{entry}":       {produce: p.entry},
		Root + "{workspace}/{board}/-/changelog.atom":          {produce: p.feed},
		Root + "{workspace}/{board}/-/image.png":               {produce: p.boardImage},
		Root + "{workspace}/{board}/-/sitemap.xml":             {produce: p.boardSitemap},
		Root + "{workspace}/{board}/{post}/image.png":          {produce: p.postImage},
		Root + "{workspace}/{board}/{post}/-/confirmed/{kind}": {produce: p.confirmed},
	}
}

// actors maps methods and paths to the actions of end-users.
func (p *Pages) actors() map[string]actor {
	all := map[string]actor{
		"POST " + Root + "{workspace}/-/forget":                p.forget,
		"POST " + Root + "{workspace}/{board}/{post}/-/unvote": p.unvote,
	}
	for path, kind := range forms(Root) {
		maps.Copy(all, map[string]actor{"GET " + path: p.form(kind), "POST " + path: p.submit(kind)})
	}
	return all
}

// mailLinks maps the methods and paths of links in e-mails.
func (p *Pages) mailLinks() map[string]actor {
	return map[string]actor{
		"GET " + Root + "{workspace}/-/confirm":      p.link,
		"POST " + Root + "{workspace}/-/confirm":     p.confirm,
		"GET " + Root + "{workspace}/-/preferences":  p.preferences,
		"POST " + Root + "{workspace}/-/preferences": p.choose,
		"GET " + unsubscribePath:                     p.preferences,
		"POST " + unsubscribePath:                    p.unsubscribe,
	}
}

// ServeHTTP serves a page. Addresses have no trailing slash.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	// A cache must revalidate a page before it serves the page again.
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

// policy allows a page its own styles, pictures and module, and blocks injected content. Scripts
// can't create HTML from texts.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// robots limits crawlers to the public pages. For crawlers, as for all readers, private pages don't
// exist.
func robots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("User-agent: *\nAllow: " + Root + "\nDisallow: /\n"))
}
