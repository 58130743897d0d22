package pagecache

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Expiring is a cache whose values expire. A full cache removes the least recently used value.
// Concurrent callers with the same key share one read.
type Expiring[T any] struct {
	// sizeOf returns the bytes of a value, and whether the cache keeps it.
	sizeOf func(T) (size int, keep bool)
	most   int
	flight singleflight.Group

	mu     sync.Mutex
	recent *list.List // of *expiring[T], the most recently used first
	by     map[string]*list.Element
	size   int
}

type expiring[T any] struct {
	key   string
	value T
	until time.Time
	size  int
}

// expiringOverhead is the memory of an entry besides its value and its key.
const expiringOverhead = 512

// NewExpiring makes a cache of at most the given number of bytes.
func NewExpiring[T any](most int, sizeOf func(T) (size int, keep bool)) *Expiring[T] {
	return &Expiring[T]{sizeOf: sizeOf, most: most, recent: list.New(), by: map[string]*list.Element{}}
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
	e := m.by[key]
	if e == nil {
		return nil
	}
	found := e.Value.(*expiring[T])
	if !time.Now().Before(found.until) {
		m.remove(e)
		return nil
	}
	m.recent.MoveToFront(e)
	return found
}

// Put keeps a value until the given time.
func (m *Expiring[T]) Put(key string, value T, until time.Time) {
	size, small := m.sizeOf(value)
	if !small {
		return
	}
	one := &expiring[T]{key: key, value: value, until: until, size: size + len(key) + expiringOverhead}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.by[one.key]; e != nil {
		m.remove(e)
	}
	m.by[one.key] = m.recent.PushFront(one)
	for m.size += one.size; m.size > m.most; {
		m.remove(m.recent.Back())
	}
}

func (m *Expiring[T]) remove(e *list.Element) {
	gone := m.recent.Remove(e).(*expiring[T])
	delete(m.by, gone.key)
	m.size -= gone.size
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
