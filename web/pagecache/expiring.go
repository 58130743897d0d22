package pagecache

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Expiring keeps what was read or made until it is to be read again, and forgets what wasn't asked for
// for longest. A caller that asks for what is being read waits for that.
type Expiring[T any] struct {
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

// NewExpiring keeps up to so many bytes.
func NewExpiring[T any](most int, sizeOf func(T) (size int, keep bool)) *Expiring[T] {
	return &Expiring[T]{sizeOf: sizeOf, most: most, recent: list.New(), by: map[string]*list.Element{}}
}

// Get is what has the key.
func (m *Expiring[T]) Get(ctx context.Context, key string, read func(context.Context) (T, time.Time, error)) (T, error) {
	if found := m.find(key); found != nil {
		return found.value, nil
	}
	found, err, _ := m.flight.Do(key, func() (any, error) {
		// It is for all who wait, so none of them may cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MakeTimeout)
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

func (m *Expiring[T]) keep(one *expiring[T]) {
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

func (m *Expiring[T]) remove(e *list.Element) {
	gone := m.recent.Remove(e).(*expiring[T])
	delete(m.by, gone.key)
	m.size -= gone.size
}

// Shared is what has the key, read within the last moment. Anew has it read now.
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
