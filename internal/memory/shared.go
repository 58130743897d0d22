package memory

import (
	"container/list"
	"context"
	"sync"
)

// Shared is one line of the budget, shared by owners such as organizations. An owner may
// hold as much as is left for all: alone half, and however many others do so too, the
// next one finds some. It is safe for concurrent use.
type Shared[Owner comparable] struct {
	limit int

	mu   sync.Mutex
	used int
	// held is by owner, without those that hold nothing.
	held map[Owner]int
	// waiting are *wait, in the order in which they came.
	waiting *list.List
}

type wait[Owner comparable] struct {
	owner   Owner
	bytes   int
	granted chan struct{}
}

// NewShared makes one of so many bytes.
func NewShared[Owner comparable](limit int) *Shared[Owner] {
	return &Shared[Owner]{limit: limit, held: map[Owner]int{}, waiting: list.New()}
}

// Acquire waits for room until the context ends, and returns the function that gives it
// back, or nil. With a context that has ended it takes what there is now. What were larger
// than half of all would count as half, so that it gets through.
func (m *Shared[Owner]) Acquire(ctx context.Context, owner Owner, bytes int) (release func()) {
	w := &wait[Owner]{owner: owner, bytes: min(bytes, m.limit/2), granted: make(chan struct{})}
	m.mu.Lock()
	place := m.waiting.PushBack(w)
	m.grant()
	m.mu.Unlock()
	select {
	case <-w.granted:
	case <-ctx.Done():
		if m.leave(place, w) {
			return nil
		}
	}
	return sync.OnceFunc(func() { m.release(w) })
}

// grant gives room to all who wait and find it, each owner's in their order.
func (m *Shared[Owner]) grant() {
	behind := map[Owner]bool{}
	for place := m.waiting.Front(); place != nil; {
		w, next := place.Value.(*wait[Owner]), place.Next()
		if behind[w.owner] || m.held[w.owner]+w.bytes > m.limit-m.used-w.bytes {
			behind[w.owner] = true
		} else {
			m.waiting.Remove(place)
			m.used += w.bytes
			m.held[w.owner] += w.bytes
			close(w.granted)
		}
		place = next
	}
}

// leave ends a wait, unless it was granted in the meantime.
func (m *Shared[Owner]) leave(place *list.Element, w *wait[Owner]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-w.granted:
		return false
	default:
		m.waiting.Remove(place)
		m.grant() // who waited behind it may need less
		return true
	}
}

func (m *Shared[Owner]) release(w *wait[Owner]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= w.bytes
	if m.held[w.owner] -= w.bytes; m.held[w.owner] == 0 {
		delete(m.held, w.owner)
	}
	m.grant()
}
