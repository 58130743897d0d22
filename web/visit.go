package web

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/etag"
	"earshot/internal/interactions"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/web/messages"
	"earshot/web/pagecache"
)

// visit is a request for a page.
type visit struct {
	*texts
	// base is where the service is found, without a slash at its end.
	base string
	path func(name string) string
	at   string
	// here is that the request comes from this machine, and was sent to it.
	here bool
	// query is what counts of the address's query.
	query url.Values
	org   *db.Organization
	// logo is when the organization's was changed, and tags are those of the board. Anew is that they
	// are read for this visit.
	logo *time.Time
	tags []*db.Tag
	anew bool
	// memory is for large rows of the page.
	memory *page.Reservation
	// cookie is what the browser keeps, and visitor who is known by it; nil is nobody. Pages that
	// are shared have neither.
	cookie  string
	visitor *interactions.Visitor
}

// maker makes an answer. What isn't there, or not public, is problem.NotFound.
type maker func(ctx context.Context, v *visit) (*answer, error)

// queried are the parameters that pages know. Others don't make another page.
var queried = []string{"q", "status", "tag", "sort", "cursor"}

// maxQuery is longer than any query of a form of ours.
const maxQuery = 8 << 10

// serve answers with a page.
func (p *Pages) serve(produce maker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, a := p.answerTo(r, produce)
		p.send(w, r, v, a)
	})
}

func (p *Pages) visitOf(r *http.Request) *visit {
	return &visit{
		texts: p.texts[messages.Best(r.Header.Get("Accept-Language"))], base: p.base(r), path: r.PathValue, at: r.URL.Path,
		query: known(r.URL), here: p.isHere(r),
	}
}

// answerTo is the answer to a request.
func (p *Pages) answerTo(r *http.Request, produce maker) (*visit, *answer) {
	v := p.visitOf(r)
	// The path as it was sent: by it the page was chosen, and in the decoded one a slash that is part
	// of a name looks like one between names.
	key := strings.Join([]string{v.words.Tag.String(), v.base, strconv.FormatBool(v.here), r.URL.EscapedPath(), v.query.Encode()}, "\x00")
	a, err := p.cache.Get(r.Context(), key, func(ctx context.Context) (*answer, error) { return p.made(ctx, v, produce) })
	if err != nil {
		a = p.failed(r, v, err)
	}
	return v, a
}

// known are the parameters of an address that count.
func known(u *url.URL) url.Values {
	kept := url.Values{}
	if len(u.RawQuery) > maxQuery {
		return kept
	}
	given := u.Query()
	for _, name := range queried {
		for _, value := range given[name] {
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	return kept
}

// made finds the organization and has the page made. What isn't there is an answer, too, which
// is the same for whatever isn't there.
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
			v.visitor = p.Interactions.Recall(v.org.ID, v.cookie)
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

// nothing is for addresses that no page has.
func nothing(context.Context, *visit) (*answer, error) { return nil, problem.Missing("page") }

// failed is the page about what kept another one from being made.
func (p *Pages) failed(r *http.Request, v *visit, err error) *answer {
	status, what := http.StatusInternalServerError, "broken"
	switch {
	case errors.Is(err, pagecache.ErrBusy), problem.Is(err, problem.RateLimited), change.Unavailable(err):
		status, what = http.StatusServiceUnavailable, "busy"
		p.log.WarnContext(r.Context(), "a page was refused", "error", err, "route", r.Pattern)
	default:
		p.log.ErrorContext(r.Context(), "a page failed", "error", err, "route", r.Pattern)
	}
	a, err := v.notice(status, what)
	if err != nil { // the template is ours, and has been executed before
		return newAnswer(status, "text/plain; charset=utf-8", nil)
	}
	return a
}

// send writes an answer, or that the reader has it already.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, v *visit, a *answer) {
	room := p.answers.Reservation(a.of)
	defer room.Release()
	if !room.Fits(len(a.body)) {
		a = p.failed(r, v, page.NoMemory())
	}
	header := w.Header()
	header.Add("Vary", "Accept-Language")
	header.Add("Vary", "Cookie") // of all, so that what isn't there looks alike
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
		header.Set("Retry-After", "2") // as long as this one has waited
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

// sendPrivate writes an answer that is for one reader, and that nobody may keep.
func (a *answer) sendPrivate(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Cache-Control", "private, no-store")
	header.Set("X-Robots-Tag", "noindex")
	// Forms say where they come from, to this service alone.
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

// noOrganization is whose memory is used before it is known whose page it is.
var noOrganization publicid.Organization

// hostPattern is what a request may say that it was sent to.
var hostPattern = regexp.MustCompile(`^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$`)

// base is where readers find the service.
func (p *Pages) base(r *http.Request) string {
	if p.publicOrigin != "" {
		return p.publicOrigin
	}
	if !hostPattern.MatchString(r.Host) {
		return ""
	}
	// Whoever makes this up has it in his own answer.
	if r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
