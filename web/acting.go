package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/web/messages"
	"earshot/web/pagecache"
)

const (
	// visitorCookie is the cookie of a browser whose visitor has confirmed an e-mail address.
	visitorCookie = "earshot_visitor"
	// maxForm fits the longest text with every character escaped, and the other fields of a form.
	maxForm = 12*publicactions.MaxText + 8<<10
	// maxFields is more than any of our forms has.
	maxFields = 20
	// looksOfNetwork limits the page views that are rendered for one network per minute: forms,
	// links, and posts for known visitors. An office with one address may need as many.
	looksOfNetwork = 300
	// linksOfNetwork limits the requests of one network per minute for links in e-mails. A mail
	// provider follows the links of many users from one network.
	linksOfNetwork = 600
	// actTimeout is longer than the database's lock timeout.
	actTimeout = 20 * time.Second
)

// acting is the visit of a person who acts or may act. Its answers are never shared.
type acting struct {
	*visit
	r    *http.Request
	form url.Values
}

type actor func(ctx context.Context, a *acting) (*answer, error)

// acts serves the visitors who act. They have slots of their own, so that acting visitors and
// readers never delay each other. The page reads the given parameters.
func (p *Pages) acts(do actor, parameters ...string) http.Handler {
	return p.actsIn(p.acting, func(r *http.Request) bool { return !reads(r) || p.lookers.Take(p.network(r)).OK }, do, parameters...)
}

// mailed serves the links in e-mails: confirmation, preferences and unsubscribe. They have slots of
// their own, so that no other visitors keep a person from them.
func (p *Pages) mailed(do actor) http.Handler {
	return p.actsIn(p.links, func(r *http.Request) bool { return p.followers.Take(p.network(r)).OK }, do)
}

// actsIn serves the visitors who act in the slots. The function admit counts a request against a limit.
func (p *Pages) actsIn(slots *pagecache.Cache[*answer], admit func(*http.Request) bool, do actor, parameters ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := p.visitOf(r, parameters...)
		var a *answer
		var err error
		if admit(r) {
			a, err = p.act(w, r, v, slots, do)
		} else {
			a, err = v.notice(http.StatusTooManyRequests, "tooMuch")
		}
		if err != nil {
			a = p.failed(r, v, err)
		}
		private := *a
		private.private = true
		p.send(w, r, v, &private)
	})
}

func (p *Pages) act(w http.ResponseWriter, r *http.Request, v *visit, slots *pagecache.Cache[*answer], do actor) (*answer, error) {
	room := p.answers.Reservation(noOrganization)
	defer room.Release()
	form, err := readForm(w, r, room)
	if errors.Is(err, errForm) {
		return v.notice(http.StatusRequestEntityTooLarge, "large")
	}
	if err != nil {
		return nil, err
	}
	if c, err := r.Cookie(visitorCookie); err == nil && !v.framed() {
		v.cookie, v.from = c.Value, p.network(r)
	}
	v.anew = true
	ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
	defer cancel()
	return slots.InSlot(ctx, p.reader(r), func(ctx context.Context) (*answer, error) {
		a, err := p.made(ctx, v, func(ctx context.Context, v *visit) (*answer, error) {
			return do(ctx, &acting{visit: v, r: r, form: form})
		})
		if n, ok := messages.NoticeOf(err); ok {
			return v.notice(n.Status, n.Name)
		}
		return a, err
	})
}

// errForm means that a posted body is not one of our forms, or is larger than any of them.
var errForm = errors.New("not a form of ours")

// readForm reads a posted form into the memory that room reserves.
func readForm(w http.ResponseWriter, r *http.Request, room *page.Reservation) (url.Values, error) {
	if reads(r) || strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, nil // not one of our forms; mail programs may unsubscribe by one, and it holds no data
	}
	if r.ContentLength < 0 || r.ContentLength > maxForm {
		return nil, errForm
	}
	if !room.Fits(int(r.ContentLength)) {
		return nil, page.NoMemory()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		return nil, errors.Join(errForm, err)
	}
	// Thousands of empty fields would take a hundred times the memory of their text.
	if bytes.Count(body, []byte("&")) > maxFields {
		return nil, errForm
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.Join(errForm, err)
	}
	return form, nil
}

// mayKnow is serve for a page that differs for a known visitor. All other requests share one page,
// also those with an invalid cookie.
func (p *Pages) mayKnow(produce maker, parameters ...string) http.Handler {
	shared := p.serve(produce, parameters...)
	own := p.acts(func(ctx context.Context, a *acting) (*answer, error) { return produce(ctx, a.visit) }, parameters...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(visitorCookie); err == nil && p.PublicActions.Remembers(c.Value) {
			own.ServeHTTP(w, r)
			return
		}
		shared.ServeHTTP(w, r)
	})
}

// open reports whether the organization accepts input from end-users. Links in e-mails need a
// configured public origin, because a client can forge the Host header. Only requests from this
// machine to itself work without one.
func (p *Pages) open(v *visit) bool {
	return !v.org.PublicClosed && !change.IsReadOnly(v.org) && (p.publicOrigin != "" || v.here)
}

// isHere reports whether a request was sent from this machine to itself. The Host header alone is
// no proof, because a client can forge it. A forwarded request never counts, because behind a proxy
// every client seems to be local.
func (p *Pages) isHere(r *http.Request) bool {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || !p.network(r).Addr().IsLoopback() {
		return false
	}
	u, err := url.Parse("http://" + r.Host)
	if err != nil {
		return false
	}
	if name := u.Hostname(); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && a.IsLoopback()
}

// mustBeOpen fails if the organization is closed.
func (p *Pages) mustBeOpen(v *visit) error {
	if !p.open(v) {
		return problem.PublicClosed.Problem()
	}
	return nil
}

// mustShow returns problem.NotFound if the organization has no public board.
func (p *Pages) mustShow(ctx context.Context) error {
	shows, err := p.Feedback.HasPublicBoard(ctx)
	if err == nil && !shows {
		err = problem.Missing("page")
	}
	return err
}

// remember returns the cookie that identifies the visitor, on the organization's pages only.
func (p *Pages) remember(v *visit, who publicactions.Sender) *http.Cookie {
	return v.cookieOf(p.PublicActions.Remember(v.org.ID, who), int(publicactions.Remembered.Seconds()))
}

func (v *visit) cookieOf(value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the origin is
		Name: visitorCookie, Value: value, Path: workspacePath(v.org), MaxAge: maxAge,
		HttpOnly: true, Secure: strings.HasPrefix(v.base, "https:"), SameSite: http.SameSiteLaxMode,
	}
}

// forget deletes the visitor's cookie.
func (p *Pages) forget(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	to := redirect(workspacePath(a.org))
	to.cookie = a.cookieOf("", -1)
	return to, nil
}

// redirect answers a posted form with a redirect to one of our pages.
func redirect(path string) *answer {
	return &answer{status: http.StatusSeeOther, mediaType: typeHTML, location: path}
}

// unvote retracts the visitor's vote.
func (p *Pages) unvote(ctx context.Context, a *acting) (*answer, error) {
	b, one, err := p.onPost(ctx, a.visit)
	if err != nil {
		return nil, err
	}
	if a.visitor != nil {
		if err := p.mustBeOpen(a.visit); err != nil {
			return nil, err
		}
		if err := p.PublicActions.Retract(ctx, *a.visitor, one.ID); err != nil {
			return nil, err
		}
	}
	return redirect(postPath(a.org, b, one.Post.Post)), nil
}

func postPath(o *db.Organization, b *db.Board, one *db.Post) string {
	return boardPath(o, b) + "/" + one.Slug
}
