package web

import (
	"context"
	"net/http"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"

	"earshot/internal/etag"
	"earshot/internal/memory"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
)

// What anonymous readers cost is bounded here: a page that many look at is made once a second,
// and only so many are made at once.

// answer is a page, or what belongs to one.
type answer struct {
	status    int
	mediaType string
	body      []byte
	tag       string
	// maxAge is how long it may be kept without asking again.
	maxAge time.Duration
	// policy is its own Content-Security-Policy; empty is that of all pages.
	policy string
	// readers are the origins of the pages of others that may read it; nil is that it isn't for them.
	readers []string
	// of is whose page it is.
	of publicid.Organization
	// private is for one reader. Only such an answer has what follows: where to go, and what the
	// browser keeps.
	private  bool
	location string
	cookie   *http.Cookie
}

// newAnswer is what was found.
func newAnswer(status int, mediaType string, body []byte) *answer {
	return &answer{status: status, mediaType: mediaType, body: body, tag: etag.Of(body)}
}

const (
	// A page is never older than a second with all that it shows, so one that has just become
	// private is still there for a second at most: what the pages of a board have in common is read
	// again after boardFresh, and a page is made again pageFresh after that. If a page were kept only
	// as long as its board, all pages of a board would expire at once and be made in one burst, and
	// the API would wait for the processors meanwhile.
	boardFresh = 200 * time.Millisecond
	pageFresh  = time.Second - boardFresh
	// maxKept is what all that are kept come to: some hundred pages, of which few are read at a time.
	maxKept = 16 << 20
	// slotWait is what a reader still waits for.
	slotWait = 2 * time.Second
	// makeTimeout ends what nobody waits for any more: some hundred times what a page takes.
	makeTimeout = 10 * time.Second
)

// errBusy is that there was no slot.
var errBusy = errors.New("too many pages are being made")

// cache makes answers, only so many at once, and keeps them for a moment.
type cache struct {
	slots   chan struct{}
	wait    time.Duration
	refused metric.Int64Counter
	answers *expiringCache[*answer]
}

func newCache(o Options) *cache {
	wait := o.Wait
	if wait == 0 {
		wait = slotWait
	}
	return &cache{
		slots: make(chan struct{}, max(1, o.Slots)), wait: wait,
		refused: o.Meter.Counter("earshot_pages_refused", "Requests for pages of public boards that were refused because too many were being made.",
			telemetry.Labels()),
		// What has room in a connection's own memory: slow readers may hold it.
		answers: newExpiringCache(maxKept, func(a *answer) (size int, small bool) { return len(a.body), len(a.body) <= memory.FreeAnswer }),
	}
}

// forActs is for who acts: slots of their own, half as many, and nothing is kept.
func (c *cache) forActs() *cache {
	return &cache{slots: make(chan struct{}, max(1, cap(c.slots)/2)), wait: c.wait, refused: c.refused}
}

// get is the answer with the key: one that was just made, the one that is being made, or a new one.
func (c *cache) get(ctx context.Context, key string, produce func(context.Context) (*answer, error)) (*answer, error) {
	return c.answers.get(ctx, key, func(ctx context.Context) (a *answer, until time.Time, err error) {
		a, err = c.inSlot(ctx, func(ctx context.Context) (*answer, error) {
			until = time.Now().Add(pageFresh) // of what is read from now on
			return produce(ctx)
		})
		return a, until, err
	})
}

func (c *cache) inSlot(ctx context.Context, produce func(context.Context) (*answer, error)) (*answer, error) {
	if !c.slot() {
		c.refused.Add(ctx, 1)
		return nil, errBusy
	}
	defer func() { <-c.slots }()
	return produce(ctx)
}

// slot waits for a slot, and reports whether there was one.
func (c *cache) slot() bool {
	select {
	case c.slots <- struct{}{}:
		return true
	default:
	}
	waited := time.NewTimer(c.wait)
	defer waited.Stop()
	select {
	case c.slots <- struct{}{}:
		return true
	case <-waited.C:
		return false
	}
}
