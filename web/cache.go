package web

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"

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
	// fresh is how long a page is given to further readers, and so how long one is still there
	// that has just become private.
	fresh = time.Second
	// maxKept is what all that are kept come to: some hundred pages, of which few are read at a time.
	maxKept = 16 << 20
	// keptOverhead of an answer, beside its body and its key.
	keptOverhead = 512
	// slotWait is what a reader still waits for.
	slotWait = 2 * time.Second
	// makeTimeout ends what nobody waits for any more: some hundred times what a page takes.
	makeTimeout = 10 * time.Second
)

// errBusy is that there was no slot.
var errBusy = errors.New("too many pages are being made")

// cache makes answers, and keeps them for a moment.
type cache struct {
	slots   chan struct{}
	wait    time.Duration
	flight  singleflight.Group
	refused metric.Int64Counter

	mu     sync.Mutex
	recent *list.List // of *kept, the latest first
	by     map[string]*list.Element
	size   int
}

type kept struct {
	key    string
	answer *answer
	until  time.Time
}

func (k *kept) size() int { return len(k.key) + len(k.answer.body) + keptOverhead }

func newCache(o Options) *cache {
	wait := o.Wait
	if wait == 0 {
		wait = slotWait
	}
	return &cache{
		slots: make(chan struct{}, max(1, o.Slots)), wait: wait, recent: list.New(), by: map[string]*list.Element{},
		refused: o.Meter.Counter("earshot_pages_refused", "Requests for pages of public boards that were refused because too many were being made.",
			telemetry.Labels()),
	}
}

// forActs is for who acts: slots of their own, half as many, and nothing is kept.
func (c *cache) forActs() *cache {
	return &cache{slots: make(chan struct{}, max(1, cap(c.slots)/2)), wait: c.wait, refused: c.refused}
}

// get is the answer with the key: one that was made within the last second, the one that is
// being made, or a new one.
func (c *cache) get(ctx context.Context, key string, produce func(context.Context) (*answer, error)) (*answer, error) {
	if a := c.find(key); a != nil {
		return a, nil
	}
	made, err, _ := c.flight.Do(key, func() (any, error) {
		// It is for all who wait, so none of them may cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTimeout)
		defer cancel()
		return c.inSlot(ctx, func(ctx context.Context) (*answer, error) {
			until := time.Now().Add(fresh) // of what is read from now on
			a, err := produce(ctx)
			if err == nil {
				c.keep(&kept{key, a, until})
			}
			return a, err
		})
	})
	if err != nil {
		return nil, err
	}
	return made.(*answer), nil
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

func (c *cache) find(key string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[key]
	if e == nil {
		return nil
	}
	found := e.Value.(*kept)
	if !time.Now().Before(found.until) {
		c.remove(e)
		return nil
	}
	c.recent.MoveToFront(e)
	return found.answer
}

// keep keeps what has room in a connection's own memory: slow readers may hold it.
func (c *cache) keep(one *kept) {
	if len(one.answer.body) > memory.FreeAnswer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[one.key]; e != nil {
		c.remove(e)
	}
	c.by[one.key] = c.recent.PushFront(one)
	for c.size += one.size(); c.size > maxKept; {
		c.remove(c.recent.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	gone := c.recent.Remove(e).(*kept)
	delete(c.by, gone.key)
	c.size -= gone.size()
}
