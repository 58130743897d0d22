// Package pagecache bounds the cost of anonymous readers. A popular page is rendered once a second,
// and the number of pages rendered at the same time is limited.
package pagecache

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"

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
// processors, but at most a quarter of the database connections. The rest is for the API.
func SlotsOf(processors int, connections int32) int {
	return max(1, min(processors/2, int(connections/4)))
}

// Cache limits the pages that are rendered at the same time, and keeps each page for a moment.
type Cache[T any] struct {
	slots   chan struct{}
	wait    time.Duration
	refused metric.Int64Counter
	kept    *Expiring[T]
}

// New makes a cache with the given slots. A reader waits for a slot for at most wait; 0 means two
// seconds. The counter refused counts the readers without a slot. size returns the bytes of a page.
func New[T any](slots int, wait time.Duration, refused metric.Int64Counter, size func(T) int) *Cache[T] {
	if wait == 0 {
		wait = slotWait
	}
	return &Cache[T]{
		slots: make(chan struct{}, max(1, slots)), wait: wait, refused: refused,
		// Only pages that fit into a connection's own memory are kept, because slow readers hold
		// them.
		kept: NewExpiring(MaxKept, func(page T) (bytes int, small bool) { return size(page), size(page) <= memory.FreeAnswer }),
	}
}

// ForActs makes a cache for visitors who act. It has slots of its own, half as many, and keeps no
// pages.
func (c *Cache[T]) ForActs() *Cache[T] {
	return &Cache[T]{slots: make(chan struct{}, max(1, cap(c.slots)/2)), wait: c.wait, refused: c.refused}
}

// Get returns the page with the key: a recent one, the one in progress, or a new one.
func (c *Cache[T]) Get(ctx context.Context, key string, produce func(context.Context) (T, error)) (T, error) {
	return c.kept.Get(ctx, key, func(ctx context.Context) (page T, until time.Time, err error) {
		page, err = c.InSlot(ctx, func(ctx context.Context) (T, error) {
			until = time.Now().Add(pageFresh) // counts from the start of the read
			return produce(ctx)
		})
		return page, until, err
	})
}

// InSlot renders a page in a slot. It returns ErrBusy if no slot becomes free in time.
func (c *Cache[T]) InSlot(ctx context.Context, produce func(context.Context) (T, error)) (page T, err error) {
	if !c.slot() {
		c.refused.Add(ctx, 1)
		return page, ErrBusy
	}
	defer func() { <-c.slots }()
	return produce(ctx)
}

// slot waits for a slot and reports whether it got one.
func (c *Cache[T]) slot() bool {
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
