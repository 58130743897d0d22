package web

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/etag"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/web/messages"
	"earshot/web/pagecache"
)

// visit is a request for a page.
type visit struct {
	*texts
	// base is the address of the service, without a trailing slash.
	base string
	path func(name string) string
	at   string
	// here is true if the request was sent from this machine to itself.
	here bool
	// query holds the parameters of the address that pages know.
	query url.Values
	org   *db.Organization
	// logo is the time of the logo's last change, and tags are those of the board. With anew, both
	// are read for this visit instead of taken from the cache.
	logo *time.Time
	tags []*db.Tag
	anew bool
	// memory is the reservation for large rows of the page.
	memory *page.Reservation
	// cookie identifies the visitor; visitor is nil if unknown. Shared pages have neither.
	cookie  string
	visitor *publicactions.Sender
	// from is the network of a request with a cookie.
	from netip.Prefix
}

// maker renders an answer. It returns problem.NotFound for a missing or private page.
type maker func(ctx context.Context, v *visit) (*answer, error)

// The parameters of a board with its filters, and those of other lists. A page ignores all other
// parameters, so these create no further page in the cache.
var (
	filters  = []string{"q", "status", "tag", "sort", "cursor"}
	onlyPage = []string{"cursor"}
)

// maxQuery is longer than the query of any of our forms.
const maxQuery = 8 << 10

// serve handles requests for a shared page that reads the given parameters.
func (p *Pages) serve(produce maker, parameters ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, a := p.answerTo(r, produce, parameters...)
		p.send(w, r, v, a)
	})
}

func (p *Pages) visitOf(r *http.Request, parameters ...string) *visit {
	return &visit{
		texts: p.texts[messages.Best(r.Header.Get("Accept-Language"))], base: p.base(r), path: r.PathValue, at: r.URL.Path,
		query: known(r.URL, parameters), here: p.isHere(r),
	}
}

// answerTo returns the answer to a request.
func (p *Pages) answerTo(r *http.Request, produce maker, parameters ...string) (*visit, *answer) {
	v := p.visitOf(r, parameters...)
	// The key has the escaped path, which also selected the route. In the decoded path, an escaped
	// slash inside a name looks like a separator.
	key := strings.Join([]string{v.words.Tag.String(), v.base, strconv.FormatBool(v.here), r.URL.EscapedPath(), v.query.Encode()}, "\x00")
	a, err := p.cache.Get(r.Context(), p.reader(r), key, func(ctx context.Context) (*answer, error) { return p.made(ctx, v, produce) })
	if err != nil {
		a = p.failed(r, v, err)
	}
	return v, a
}

// reader returns for whom the page of a request is rendered. An organization has a slug and an id,
// which count as one once a page has loaded it by both.
func (p *Pages) reader(r *http.Request) pagecache.Reader {
	by := pagecache.Reader{Network: p.network(r), Organization: r.PathValue("workspace")}
	if id, ok := p.names.Peek(by.Organization); ok {
		by.Organization = id
	}
	return by
}

// known returns the given parameters of an address.
func known(u *url.URL, parameters []string) url.Values {
	kept := url.Values{}
	if len(u.RawQuery) > maxQuery {
		return kept
	}
	given := u.Query()
	for _, name := range parameters {
		for _, value := range given[name] {
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	return kept
}

// made loads the organization and renders the page. All missing pages have the same answer.
func (p *Pages) made(ctx context.Context, v *visit, produce maker) (*answer, error) {
	a, err := p.inWorkspace(ctx, v, produce)
	if problem.Is(err, problem.NotFound) || problem.Is(err, problem.Validation) {
		return v.notice(http.StatusNotFound, "missing")
	}
	return a, err
}

func (p *Pages) inWorkspace(ctx context.Context, v *visit, produce maker) (*answer, error) {
	if name := v.path("workspace"); name != "" {
		if err := p.find(ctx, v, name); err != nil {
			return nil, err
		}
		if v.cookie != "" {
			v.visitor = p.PublicActions.Recall(v.org.ID, v.cookie, v.from)
		}
		ctx = change.WithCaller(ctx, &change.Caller{Organization: v.org})
		v.memory = p.answers.Reservation(v.org.ID)
		defer v.memory.Release()
	}
	a, err := produce(ctx, v)
	if a != nil && v.org != nil {
		a.of = v.org.ID
	}
	return a, err
}

// nothing handles addresses without a page.
func nothing(context.Context, *visit) (*answer, error) { return nil, problem.Missing("page") }

// failed returns the page about an error.
func (p *Pages) failed(r *http.Request, v *visit, err error) *answer {
	status, what := http.StatusInternalServerError, "broken"
	switch {
	case r.Context().Err() != nil: // the reader left, or the service stops: nobody reads the answer
		p.log.InfoContext(r.Context(), "a page was given up", "error", err, "route", r.Pattern)
	case errors.Is(err, pagecache.ErrBusy), problem.Is(err, problem.RateLimited), change.Unavailable(err):
		status, what = http.StatusServiceUnavailable, "busy"
		p.log.WarnContext(r.Context(), "a page was refused", "error", err, "route", r.Pattern)
	default:
		p.log.ErrorContext(r.Context(), "a page failed", "error", err, "route", r.Pattern)
	}
	a, err := v.notice(status, what)
	if err != nil { // the template is ours and was rendered before
		return newAnswer(status, "text/plain; charset=utf-8", nil)
	}
	return a
}

// send writes an answer, or status 304 if the reader already has it.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, v *visit, a *answer) {
	room := p.answers.Reservation(a.of)
	defer room.Release()
	if !room.Fits(len(a.body)) {
		a = p.failed(r, v, page.NoMemory())
	}
	header := w.Header()
	header.Add("Vary", "Accept-Language")
	header.Add("Vary", "Cookie") // on all pages, so that missing ones look the same
	header.Set("Content-Language", v.words.Tag.String())
	header.Set("Content-Type", a.mediaType)
	if a.policy != "" {
		header.Set("Content-Security-Policy", a.policy)
	}
	if a.private {
		a.sendPrivate(w)
		return
	}
	switch a.status {
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "2") // as long as this reader has waited
	case http.StatusNotFound:
		header.Set("X-Robots-Tag", "noindex")
	case http.StatusOK:
		header.Set("ETag", a.tag)
		if a.maxAge > 0 {
			header.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(a.maxAge.Seconds())))
		}
		if etag.Has(r.Header, a.tag) {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	a.write(w)
}

// sendPrivate writes an answer for one visitor. No cache may store it.
func (a *answer) sendPrivate(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Cache-Control", "private, no-store")
	header.Set("X-Robots-Tag", "noindex")
	// Forms send their origin to this service only.
	header.Set("Referrer-Policy", "same-origin")
	switch a.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", "60")
	case http.StatusSeeOther:
		header.Set("Location", a.location)
	}
	if a.cookie != nil {
		http.SetCookie(w, a.cookie)
	}
	a.write(w)
}

func (a *answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) //nolint:gosec // made by html/template; a reader that left isn't told
}

// noOrganization accounts for memory until the organization of a request is known.
var noOrganization publicid.Organization

// hostPattern is the accepted form of a Host header.
var hostPattern = regexp.MustCompile(`^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$`)

// base returns the address at which readers find the service.
func (p *Pages) base(r *http.Request) string {
	if p.publicOrigin != "" {
		return p.publicOrigin
	}
	if !hostPattern.MatchString(r.Host) {
		return ""
	}
	// A client that forges this header changes only its own answer.
	if r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
