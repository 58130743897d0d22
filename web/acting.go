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
	"earshot/ent/db/organization"
	"earshot/internal/interactions"
	"earshot/internal/page"
	"earshot/internal/problem"
)

const (
	// visitorCookie is how a browser is known whose user has confirmed an address.
	visitorCookie = "earshot_visitor"
	// maxForm is a text of the largest size, each character escaped, with all else of a form.
	maxForm = 12*interactions.MaxText + 8<<10
	// maxFields are more than any form of ours has.
	maxFields = 20
	// looksOfNetwork are pages a minute that are made for one network alone: forms, links, and posts
	// for who is known. An office reads as many.
	looksOfNetwork = 300
	// actTimeout is longer than a change waits for a row.
	actTimeout = 20 * time.Second
)

// acting is the visit of somebody who acts, or may. Nothing of it is for others.
type acting struct {
	*visit
	r    *http.Request
	form url.Values
}

type actor func(ctx context.Context, a *acting) (*answer, error)

// acts answers whoever acts. Its slots are apart from those of readers, so that neither keep the
// others waiting.
func (p *Pages) acts(do actor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := p.visitOf(r)
		var a *answer
		var err error
		if reads(r) && !p.lookers.Take(p.network(r)).OK {
			a, err = v.notice(http.StatusTooManyRequests, "tooMuch")
		} else {
			a, err = p.act(w, r, v, do)
		}
		if err != nil {
			a = p.failed(r, v, err)
		}
		private := *a
		private.private = true
		p.send(w, r, v, &private)
	})
}

func (p *Pages) act(w http.ResponseWriter, r *http.Request, v *visit, do actor) (*answer, error) {
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
		v.cookie = c.Value
	}
	v.anew = true
	ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
	defer cancel()
	return p.acting.InSlot(ctx, func(ctx context.Context) (*answer, error) {
		a, err := p.made(ctx, v, func(ctx context.Context, v *visit) (*answer, error) {
			return do(ctx, &acting{visit: v, r: r, form: form})
		})
		switch {
		case problem.Is(err, problem.RateLimited):
			return v.notice(http.StatusTooManyRequests, "tooMuch")
		case interactions.IsQueueFull(err):
			return v.notice(http.StatusForbidden, "full")
		case problem.Is(err, problem.Forbidden):
			return v.notice(http.StatusForbidden, "closed")
		}
		return a, err
	})
}

// errForm is that what was posted is larger than any form of ours, or none.
var errForm = errors.New("not a form of ours")

// readForm reads what was posted, into room.
func readForm(w http.ResponseWriter, r *http.Request, room *page.Reservation) (url.Values, error) {
	if reads(r) || strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, nil // no form of ours; a program of mail may post one to unsubscribe, which says nothing
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

// mayKnow is serve for a page that shows something else to who is known on the browser. All
// others share one, also who comes with a cookie that isn't ours.
func (p *Pages) mayKnow(produce maker) http.Handler {
	shared := p.serve(produce)
	own := p.acts(func(ctx context.Context, a *acting) (*answer, error) { return produce(ctx, a.visit) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(visitorCookie); err == nil && p.Interactions.Remembers(c.Value) {
			own.ServeHTTP(w, r)
			return
		}
		shared.ServeHTTP(w, r)
	})
}

// open reports whether the organization takes something from end-users. Links in e-mails lead
// only where the operator says, and not where whoever asked for one said that the service is; but
// to this machine itself they may.
func (p *Pages) open(v *visit) bool {
	return !v.org.PublicClosed && v.org.BillingState != organization.BillingStateReadOnly && (p.publicOrigin != "" || v.here)
}

// isHere reports whether a request was sent from this machine to itself. What it says of its host
// alone anybody can make up, and behind a proxy everybody seems to come from here.
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

// mustBeOpen is the problem of an organization that isn't.
func (p *Pages) mustBeOpen(v *visit) error {
	if !p.open(v) {
		return interactions.Closed()
	}
	return nil
}

// mustShow is problem.NotFound for an organization without a public board.
func (p *Pages) mustShow(ctx context.Context) error {
	shows, err := p.Feedback.HasPublicBoard(ctx)
	if err == nil && !shows {
		err = problem.Missing("page")
	}
	return err
}

// remember has the browser know its user, for the pages of the organization alone.
func (p *Pages) remember(v *visit, who interactions.Visitor) *http.Cookie {
	return v.cookieOf(p.Interactions.Remember(v.org.ID, who), int(interactions.Remembered.Seconds()))
}

func (v *visit) cookieOf(value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the origin is
		Name: visitorCookie, Value: value, Path: workspacePath(v.org), MaxAge: maxAge,
		HttpOnly: true, Secure: strings.HasPrefix(v.base, "https:"), SameSite: http.SameSiteLaxMode,
	}
}

// forget has the browser know its user no more.
func (p *Pages) forget(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	to := redirect(workspacePath(a.org))
	to.cookie = a.cookieOf("", -1)
	return to, nil
}

// redirect leads to a page of ours after something was posted.
func redirect(path string) *answer {
	return &answer{status: http.StatusSeeOther, mediaType: typeHTML, location: path}
}

// unvote takes the visitor's vote back.
func (p *Pages) unvote(ctx context.Context, a *acting) (*answer, error) {
	b, one, err := p.onPost(ctx, a.visit)
	if err != nil {
		return nil, err
	}
	if a.visitor != nil {
		if err := p.mustBeOpen(a.visit); err != nil {
			return nil, err
		}
		if err := p.Interactions.Retract(ctx, *a.visitor, one.ID); err != nil {
			return nil, err
		}
	}
	return redirect(postPath(a.org, b, one.Post)), nil
}

func postPath(o *db.Organization, b *db.Board, one *db.Post) string {
	return boardPath(o, b) + "/" + one.Slug
}
