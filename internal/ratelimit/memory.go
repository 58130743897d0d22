package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"golang.org/x/time/rate"
)

// Most is the largest number of keys: 3.4 MB at about 330 bytes each. A client with more networks
// than this gets a new bucket for a forgotten key, and so gains the tokens of one bucket.
const Most = 10_000

// Buckets has a token bucket for each key. It is safe for concurrent use.
type Buckets[K comparable] struct {
	perMinute int

	mu sync.Mutex
	// The type is an interface for the same reason as batch.Batcher.
	of interface {
		Get(key K) (*rate.Limiter, bool)
		Add(key K, one *rate.Limiter) (evicted bool)
	}
}

// NewBuckets makes buckets that hold perMinute tokens and refill at that rate.
func NewBuckets[K comparable](perMinute int) *Buckets[K] {
	return &Buckets[K]{perMinute: perMinute, of: expirable.NewLRU[K, *rate.Limiter](Most, nil, 0)}
}

// Take is the result of Buckets.Take.
type Take struct {
	// OK reports whether a token was taken.
	OK bool
	// Left is the number of tokens left in the bucket.
	Left float64
	At   time.Time
}

// Take takes a token from the key's bucket if there is one.
func (b *Buckets[K]) Take(key K) Take {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, known := b.of.Get(key)
	if !known {
		one = rate.NewLimiter(rate.Limit(b.perMinute)/60, b.perMinute)
		b.of.Add(key, one)
	}
	// The time is read under the lock. An earlier time than that of the previous call would turn
	// the bucket's clock back, and the bucket would refill twice for the same period.
	at := time.Now()
	ok := one.AllowN(at, 1)
	return Take{OK: ok, Left: max(0, one.TokensAt(at)), At: at}
}
