// Package tokenbucket keeps token buckets in the memory of this process, one for each key, and
// forgets those that weren't used for longest: what strangers send must not fill the memory. What
// has to hold in all processes together stands in the database (internal/store).
package tokenbucket

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Most is how many keys are remembered: some 300 bytes each, so 3 MB. Who comes from more networks
// than this is forgotten again, and gains what one bucket lets through.
const Most = 10_000

// Buckets are token buckets by key. They are safe for concurrent use.
type Buckets[K comparable] struct {
	perMinute int

	mu     sync.Mutex
	recent *list.List // of bucket[K], the latest first
	by     map[K]*list.Element
}

type bucket[K comparable] struct {
	key K
	*rate.Limiter
}

// New makes buckets that hold so many tokens, and get as many back in a minute.
func New[K comparable](perMinute int) *Buckets[K] {
	return &Buckets[K]{perMinute: perMinute, recent: list.New(), by: map[K]*list.Element{}}
}

// Taken is what became of a request for a token.
type Taken struct {
	// OK says that there was one.
	OK bool
	// Left is what the bucket holds.
	Left float64
	At   time.Time
}

// Take takes a token of the key's bucket, if there is one.
func (b *Buckets[K]) Take(key K) Taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.by[key]
	if e == nil {
		if b.recent.Len() >= Most {
			delete(b.by, b.recent.Remove(b.recent.Back()).(bucket[K]).key)
		}
		e = b.recent.PushFront(bucket[K]{key, rate.NewLimiter(rate.Limit(b.perMinute)/60, b.perMinute)})
		b.by[key] = e
	}
	b.recent.MoveToFront(e)
	// The moment is taken under the lock: one before the last would set the bucket's clock back, and
	// it would refill for the same time twice.
	one, at := e.Value.(bucket[K]), time.Now()
	ok := one.AllowN(at, 1)
	return Taken{OK: ok, Left: max(0, one.TokensAt(at)), At: at}
}
