package pagecache

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"golang.org/x/sync/singleflight"
)

// Expiring is a cache whose values expire. A full cache removes the least recently used value.
// Concurrent callers with the same key share one read.
type Expiring[T any] struct {
	// sizeOf returns the bytes of a value, and whether the cache keeps it.
	sizeOf func(T) (size int, keep bool)
	most   int
	flight singleflight.Group

	mu   sync.Mutex
	kept *expirable.LRU[string, *expiring[T]]
	size int
}

type expiring[T any] struct {
	value T
	until time.Time
	size  int
}

// expiringOverhead is the memory of an entry besides its value and its key.
const expiringOverhead = 512

// NewExpiring makes a cache of at most the given number of bytes.
func NewExpiring[T any](most int, sizeOf func(T) (size int, keep bool)) *Expiring[T] {
	m := &Expiring[T]{sizeOf: sizeOf, most: most}
	// The values have ends of their own. With a lifetime for all, the library would start a goroutine that never ends.
	m.kept = expirable.NewLRU(0, func(_ string, gone *expiring[T]) { m.size -= gone.size }, 0)
	return m
}

// Get returns the value with the key. It reads the value if the cache does not have it.
func (m *Expiring[T]) Get(ctx context.Context, key string, read func(context.Context) (T, time.Time, error)) (T, error) {
	if found := m.find(key); found != nil {
		return found.value, nil
	}
	found, err, _ := m.flight.Do(key, func() (any, error) {
		// All waiting callers share the value, so no caller may cancel the read.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MakeTimeout)
		defer cancel()
		value, until, err := read(ctx)
		if err != nil {
			return nil, err
		}
		m.Put(key, value, until)
		return value, nil
	})
	if err != nil {
		var none T
		return none, err
	}
	return found.(T), nil
}

// Peek returns the value with the key if the cache has it.
func (m *Expiring[T]) Peek(key string) (value T, ok bool) {
	if found := m.find(key); found != nil {
		return found.value, true
	}
	return value, false
}

func (m *Expiring[T]) find(key string) *expiring[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.kept.Get(key)
	if ok && !time.Now().Before(found.until) {
		m.kept.Remove(key)
		return nil
	}
	return found
}

// Put keeps a value until the given time.
func (m *Expiring[T]) Put(key string, value T, until time.Time) {
	size, small := m.sizeOf(value)
	if !small {
		return
	}
	one := &expiring[T]{value: value, until: until, size: size + len(key) + expiringOverhead}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.Remove(key) // Add would not subtract the size of the former value
	m.kept.Add(key, one)
	for m.size += one.size; m.size > m.most; {
		m.kept.RemoveOldest()
	}
}

// Shared returns a value that is at most boardFresh old. With anew, it reads the value now.
func Shared[T any](ctx context.Context, of *Expiring[T], anew bool, key string, read func(context.Context) (T, error)) (T, error) {
	if anew {
		return read(ctx)
	}
	return of.Get(ctx, key, func(ctx context.Context) (T, time.Time, error) {
		until := time.Now().Add(boardFresh)
		found, err := read(ctx)
		return found, until, err
	})
}
