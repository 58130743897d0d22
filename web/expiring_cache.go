package web

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// expiringCache keeps what was read or made until it is to be read again, and forgets what wasn't asked for
// for longest. Who asks for what is being read waits for that.
type expiringCache[T any] struct {
	// sizeOf is how many bytes something takes, and whether it is kept at all.
	sizeOf func(T) (size int, keep bool)
	most   int
	flight singleflight.Group

	mu     sync.Mutex
	recent *list.List // of *expiring[T], the latest first
	by     map[string]*list.Element
	size   int
}

type expiring[T any] struct {
	key   string
	value T
	until time.Time
	size  int
}

// expiringOverhead of what is kept, beside its own size and its key.
const expiringOverhead = 512

func newExpiringCache[T any](most int, sizeOf func(T) (size int, keep bool)) *expiringCache[T] {
	return &expiringCache[T]{sizeOf: sizeOf, most: most, recent: list.New(), by: map[string]*list.Element{}}
}

// get is what has the key.
func (m *expiringCache[T]) get(ctx context.Context, key string, read func(context.Context) (T, time.Time, error)) (T, error) {
	if found := m.find(key); found != nil {
		return found.value, nil
	}
	found, err, _ := m.flight.Do(key, func() (any, error) {
		// It is for all who wait, so none of them may cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTimeout)
		defer cancel()
		value, until, err := read(ctx)
		if err != nil {
			return nil, err
		}
		one := &expiring[T]{key: key, value: value, until: until}
		m.keep(one)
		return one, nil
	})
	if err != nil {
		var none T
		return none, err
	}
	return found.(*expiring[T]).value, nil
}

func (m *expiringCache[T]) find(key string) *expiring[T] {
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

func (m *expiringCache[T]) keep(one *expiring[T]) {
	size, small := m.sizeOf(one.value)
	if !small {
		return
	}
	one.size = size + len(one.key) + expiringOverhead
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

func (m *expiringCache[T]) remove(e *list.Element) {
	gone := m.recent.Remove(e).(*expiring[T])
	delete(m.by, gone.key)
	m.size -= gone.size
}
