package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/outside"
	earshot "earshot/sdk/go"
)

const (
	// publicOrigin is the configured public address of the boards.
	publicOrigin = "https://feedback.example.com"
	// visitors is the number of concurrent visitors. interactionPause keeps them below an
	// organization's limit of 600 links in ten minutes.
	visitors         = 4
	interactionPause = 3 * time.Second
	// leaveEvery is the interval between erasures in a full run.
	leaveEvery = 20 * time.Second
	// pollEvery is the interval at which the copy catches up.
	pollEvery = 300 * time.Millisecond
	// firstLeaver is higher than the numbers of all visitors.
	firstLeaver = 1 << 20
)

// outsiders act on public boards and keep a copy, during the kills.
type outsiders struct {
	run     *run
	mailbox *outside.Mailbox
	copy    *outside.Copy
	// api belongs to the plain tenant, which has the visitors' board.
	api          *outside.API
	site         outside.Site
	place        outside.Place
	leaver       outside.Leaver
	acknowledged map[string]bool

	stop  func()
	ended sync.WaitGroup

	mu           sync.Mutex
	interactions []*outside.Interaction
	gone         []outside.Gone
	broken       []error
}

// newOutsiders opens a board for visitors and one for the persons who are erased.
func (r *run) newOutsiders(ctx context.Context) (*outsiders, error) {
	o := &outsiders{
		run: r, mailbox: outside.NewMailbox(filepath.Join(r.dir, "mail")), api: outside.NewAPI(r.stack.url, r.plain.key),
		acknowledged: map[string]bool{},
	}
	o.copy = o.api.Copy("/v1/posts")
	var err error
	if o.site, o.place, err = r.openBoard(ctx, r.plain); err != nil {
		return nil, err
	}
	// With slow receivers an erasure waits for attempts, which takes 15 s more.
	left := r.mixed
	if r.options.short {
		left = r.plain
	}
	o.leaver = outside.Leaver{Mailbox: o.mailbox, API: outside.NewAPI(r.stack.url, left.key)}
	o.leaver.Site, o.leaver.Place, err = r.openBoard(ctx, left)
	return o, err
}

// openBoard gives a tenant a public board with a post.
func (r *run) openBoard(ctx context.Context, t *tenant) (site outside.Site, place outside.Place, err error) {
	b, err := t.api.Boards.Create(ctx, earshot.CreateBoardRequest{Name: "Interactions", Public: earshot.Ptr(true)})
	if err != nil {
		return site, place, errors.Wrap(err, "create a public board")
	}
	post, err := t.api.Posts.Create(ctx, b.ID, earshot.CreatePostRequest{Title: "Dark mode"})
	if err != nil {
		return site, place, errors.Wrap(err, "create a post")
	}
	site = outside.Site{URL: r.stack.url, Origin: publicOrigin, Home: "/b/" + b.OrganizationID}
	at := site.Home + "/" + b.Slug
	return site, outside.Place{Board: b.ID, On: post.ID, BoardPath: at, PostPath: at + "/" + post.Slug}, nil
}

// begin starts the outsiders, unless they are already active. They act until end.
func (r *run) begin(ctx context.Context) (err error) {
	if r.outsiders == nil {
		if r.outsiders, err = r.newOutsiders(ctx); err != nil {
			return err
		}
	}
	o := r.outsiders
	if o.stop != nil {
		return nil
	}
	acting, stop := context.WithCancel(ctx)
	o.stop = stop
	for range visitors {
		o.ended.Go(func() { o.visit(ctx, acting) })
	}
	o.ended.Go(func() { o.leave(ctx, acting) })
	o.ended.Go(func() {
		for acting.Err() == nil {
			o.note(ctx, o.copy.CatchUp(ctx))
			_ = pause(acting, pollEvery)
		}
	})
	return nil
}

// end stops the outsiders and waits until they have finished their current action.
func (o *outsiders) end() {
	if o.stop != nil {
		o.stop()
		o.ended.Wait()
		o.stop = nil
	}
}

// note records a broken promise. It ignores cancelled actions and errors due to the end of the run.
func (o *outsiders) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = append(o.broken, err)
}

// bounded runs a whole action of an end-user within waitTimeout.
func bounded(ctx context.Context, act func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.Errorf("not within %s", waitTimeout))
	defer cancel()
	return act(ctx)
}

// visit makes one interaction after the other, each by a new visitor.
func (o *outsiders) visit(ctx, acting context.Context) {
	for acting.Err() == nil {
		w, n := o.interaction()
		o.note(ctx, bounded(ctx, func(ctx context.Context) error { return o.act(ctx, w, n) }))
		_ = pause(acting, interactionPause)
	}
}

func (o *outsiders) interaction() (*outside.Interaction, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.interactions)
	kind := []outside.Kind{outside.Post, outside.Vote, outside.Comment}[n%3]
	w := &outside.Interaction{
		Kind: kind, At: o.place.Form(kind), Words: fmt.Sprintf("Interaction %d", n), Name: "Quentin",
		Email: fmt.Sprintf("visitor-%d@example.com", n), OptIn: n%2 == 0,
	}
	o.interactions = append(o.interactions, w)
	return w, n
}

// act sends a form. It uses the link of four forms in five, sometimes twice. The end of the load
// does not cancel it: the judge has to know whether a press counts, and even a short run has
// confirmed interactions.
func (o *outsiders) act(ctx context.Context, w *outside.Interaction, n int) error {
	v := o.site.Visitor(n, o.mailbox)
	if err := v.Ask(ctx, w); err != nil || n%5 == 4 {
		return err
	}
	link, err := v.Link(ctx, w)
	if err != nil {
		return err
	}
	if err := v.Press(ctx, w, link); err != nil || n%2 == 0 {
		return err
	}
	return v.PressAgain(ctx, w, link)
}

// leave runs erasures one after the other. The short form runs one.
func (o *outsiders) leave(ctx, acting context.Context) {
	for acting.Err() == nil {
		o.note(ctx, bounded(ctx, func(ctx context.Context) error {
			gone, err := o.leaver.Leave(ctx, firstLeaver+len(o.gone))
			if err == nil {
				o.mu.Lock()
				o.gone = append(o.gone, gone)
				o.mu.Unlock()
			}
			return err
		}))
		if o.run.options.short {
			return
		}
		_ = pause(acting, leaveEvery)
	}
}
