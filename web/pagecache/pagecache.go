// Package pagecache bounds what anonymous readers cost: a page that many look at is made once a
// second, and only so many are made at once.
package pagecache

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"

	"earshot/internal/memory"
)

const (
	// A page is never older than a second with all that it shows, so one that has just become
	// private is still there for a second at most: what the pages of a board have in common is read
	// again after boardFresh, and a page is made again pageFresh after that. If a page were kept only
	// as long as its board, all pages of a board would expire at once and be made in one burst, and
	// the API would wait for the processors meanwhile.
	boardFresh = 200 * time.Millisecond
	pageFresh  = time.Second - boardFresh
	// MaxKept is what all that are kept come to: some hundred pages, of which few are read at a time.
	MaxKept = 16 << 20
	// slotWait is what a reader still waits for.
	slotWait = 2 * time.Second
	// MakeTimeout ends what nobody waits for any more: some hundred times what a page takes.
	MakeTimeout = 10 * time.Second
)

// ErrBusy is that there was no slot.
var ErrBusy = errors.New("too many pages are being made")

// SlotsOf is how many pages are made at once: as many as half of the processors, at most a quarter
// of the connections to the database, so that readers leave the other half and most of the
// connections to the API.
func SlotsOf(processors int, connections int32) int {
	return max(1, min(processors/2, int(connections/4)))
}

// Cache makes pages, only so many at once, and keeps them for a moment.
type Cache[T any] struct {
	slots   chan struct{}
	wait    time.Duration
	refused metric.Int64Counter
	kept    *Expiring[T]
}

// New makes a cache with so many slots, for which a reader waits; 0 is two seconds. Refused counts
// the readers who found none. Size is how many bytes a page has.
func New[T any](slots int, wait time.Duration, refused metric.Int64Counter, size func(T) int) *Cache[T] {
	if wait == 0 {
		wait = slotWait
	}
	return &Cache[T]{
		slots: make(chan struct{}, max(1, slots)), wait: wait, refused: refused,
		// What has room in a connection's own memory: slow readers may hold it.
		kept: NewExpiring(MaxKept, func(page T) (bytes int, small bool) { return size(page), size(page) <= memory.FreeAnswer }),
	}
}

// ForActs is for those who act: slots of their own, half as many, and nothing is kept.
func (c *Cache[T]) ForActs() *Cache[T] {
	return &Cache[T]{slots: make(chan struct{}, max(1, cap(c.slots)/2)), wait: c.wait, refused: c.refused}
}

// Get is the page with the key: one that was just made, the one that is being made, or a new one.
func (c *Cache[T]) Get(ctx context.Context, key string, produce func(context.Context) (T, error)) (T, error) {
	return c.kept.Get(ctx, key, func(ctx context.Context) (page T, until time.Time, err error) {
		page, err = c.InSlot(ctx, func(ctx context.Context) (T, error) {
			until = time.Now().Add(pageFresh) // of what is read from now on
			return produce(ctx)
		})
		return page, until, err
	})
}

// InSlot makes a page once there is a slot, and ends with ErrBusy where there is none.
func (c *Cache[T]) InSlot(ctx context.Context, produce func(context.Context) (T, error)) (page T, err error) {
	if !c.slot() {
		c.refused.Add(ctx, 1)
		return page, ErrBusy
	}
	defer func() { <-c.slots }()
	return produce(ctx)
}

// slot waits for a slot, and reports whether there was one.
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
