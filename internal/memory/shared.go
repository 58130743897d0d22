package memory

import (
	"container/list"
	"context"
	"sync"
)

// Shared is one line of the budget, shared by owners such as organizations. An owner may hold at
// most as many bytes as remain free for all. A single owner thus gets half of the bytes, and there
// is always room for one more owner. Shared is safe for concurrent use.
type Shared[Owner comparable] struct {
	limit int

	mu   sync.Mutex
	used int
	// held has the bytes of each owner. Owners without bytes are not in it.
	held map[Owner]int
	// waiting has *wait values in the order of their arrival.
	waiting *list.List
}

type wait[Owner comparable] struct {
	owner   Owner
	bytes   int
	granted chan struct{}
}

// NewShared makes a Shared with limit bytes.
func NewShared[Owner comparable](limit int) *Shared[Owner] {
	return &Shared[Owner]{limit: limit, held: map[Owner]int{}, waiting: list.New()}
}

// Acquire waits for room until the context ends. It returns the function that releases the room, or
// nil if the context ended first. With a context that has already ended, Acquire succeeds only if
// there is room now. A request for more than half of the limit counts as half, so that it can
// succeed.
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

// grant gives room to all waiting requests that fit. Requests of one owner keep their order.
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

// leave ends a wait. It returns false if the request has been granted in the meantime.
func (m *Shared[Owner]) leave(place *list.Element, w *wait[Owner]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-w.granted:
		return false
	default:
		m.waiting.Remove(place)
		m.grant() // a request behind it may need less
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
