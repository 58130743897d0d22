// Package pagecache bounds the cost of anonymous readers. A popular page is rendered once a second,
// and the number of pages rendered at the same time is limited.
package pagecache

import (
	"context"
	"net/netip"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"

	"earshot/internal/inflight"
	"earshot/internal/memory"
)

const (
	// A page and all its data are at most one second old, so a page that becomes private disappears
	// within a second. The shared data of a board lives for boardFresh, and a rendered page for
	// pageFresh. With equal lives, all pages of a board would expire together. Rendering them in
	// one burst would take the processors from the API.
	boardFresh = 200 * time.Millisecond
	pageFresh  = time.Second - boardFresh
	// MaxKept bounds the size of all cached pages: some hundred pages, of which few are popular at
	// a time.
	MaxKept = 16 << 20
	// slotWait is a delay that a reader accepts.
	slotWait = 2 * time.Second
	// MakeTimeout ends abandoned work. It is some hundred times the usual duration.
	MakeTimeout = 10 * time.Second
)

// ErrBusy means that no slot became free in time.
var ErrBusy = errors.New("too many pages are being made")

// SlotsOf returns the number of pages that are rendered at the same time. It is half of the
// processors, but at most a quarter of the database connections. The rest is for the API. Two is the
// least, because one network gets half of them.
func SlotsOf(processors int, connections int32) int {
	return max(2, min(processors/2, int(connections/4)))
}

// Reader identifies for whom a page is rendered. Each network and each organization gets at most half
// of the slots, and so at most half of the places in the queue for a slot.
type Reader struct {
	Network netip.Prefix
	// Organization is the organization whose page it is, by any name.
	Organization string
}

// Cache limits the pages that are rendered at the same time, and keeps each page for a moment.
type Cache[T any] struct {
	slots         chan struct{}
	networks      *inflight.Limit[netip.Prefix]
	organizations *inflight.Limit[string]
	wait          time.Duration
	refused       metric.Int64Counter
	kept          *Expiring[T]
}

// New makes a cache with the given slots, at least two. A reader waits for a slot for at most wait; 0
// means two seconds. The counter refused counts the readers without a slot. size returns the bytes of
// a page.
func New[T any](slots int, wait time.Duration, refused metric.Int64Counter, size func(T) int) *Cache[T] {
	if wait == 0 {
		wait = slotWait
	}
	c := withSlots[T](slots, wait, refused)
	// Only pages that fit into a connection's own memory are kept, because slow readers hold them.
	c.kept = NewExpiring(MaxKept, func(page T) (bytes int, small bool) { return size(page), size(page) <= memory.FreeAnswer })
	return c
}

func withSlots[T any](slots int, wait time.Duration, refused metric.Int64Counter) *Cache[T] {
	slots = max(2, slots)
	return &Cache[T]{
		slots: make(chan struct{}, slots), wait: wait, refused: refused,
		networks: inflight.NewLimit[netip.Prefix](slots/2, wait), organizations: inflight.NewLimit[string](slots/2, wait),
	}
}

// Apart makes a cache for other visitors. It has slots of its own, half as many but at least two, and
// keeps no pages.
func (c *Cache[T]) Apart() *Cache[T] { return withSlots[T](cap(c.slots)/2, c.wait, c.refused) }

// Get returns the page with the key: a recent one, the one in progress, or a new one. It returns
// ErrBusy if no slot becomes free in time. A network waits for its own slots before it joins readers
// of other networks, so these never wait for its share.
func (c *Cache[T]) Get(ctx context.Context, by Reader, key string, produce func(context.Context) (T, error)) (page T, err error) {
	if found := c.kept.find(key); found != nil {
		return found.value, nil
	}
	until := time.Now().Add(c.wait)
	leave, err := wait(ctx, c.networks, by.Network, until)
	if err != nil {
		return page, c.busy(ctx, err)
	}
	defer leave()
	return c.kept.Get(ctx, key, func(ctx context.Context) (page T, fresh time.Time, err error) {
		page, err = c.inSlotOf(ctx, by.Organization, until, func(ctx context.Context) (T, error) {
			fresh = time.Now().Add(pageFresh) // counts from the start of the read
			return produce(ctx)
		})
		return page, fresh, err
	})
}

// InSlot renders a page in a slot. It returns ErrBusy if no slot becomes free in time.
func (c *Cache[T]) InSlot(ctx context.Context, by Reader, produce func(context.Context) (T, error)) (page T, err error) {
	until := time.Now().Add(c.wait)
	leave, err := wait(ctx, c.networks, by.Network, until)
	if err != nil {
		return page, c.busy(ctx, err)
	}
	defer leave()
	return c.inSlotOf(ctx, by.Organization, until, produce)
}

func (c *Cache[T]) inSlotOf(
	ctx context.Context, organization string, until time.Time, produce func(context.Context) (T, error),
) (page T, err error) {
	leave, err := wait(ctx, c.organizations, organization, until)
	if err != nil {
		return page, c.busy(ctx, err)
	}
	defer leave()
	if !c.slot(until) {
		return page, c.busy(ctx, ErrBusy)
	}
	defer func() { <-c.slots }()
	return produce(ctx)
}

// wait acquires a slot of the key. All waits of a reader end at the same time.
func wait[K comparable](ctx context.Context, limit *inflight.Limit[K], of K, until time.Time) (leave func(), err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return limit.Acquire(ctx, of)
}

// busy returns the error of a reader without a slot. A reader that has left is not counted.
func (c *Cache[T]) busy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	c.refused.Add(ctx, 1)
	return ErrBusy
}

// slot waits for a slot and reports whether it got one.
func (c *Cache[T]) slot(until time.Time) bool {
	select {
	case c.slots <- struct{}{}:
		return true
	default:
	}
	waited := time.NewTimer(time.Until(until))
	defer waited.Stop()
	select {
	case c.slots <- struct{}{}:
		return true
	case <-waited.C:
		return false
	}
}
