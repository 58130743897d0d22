package fairness

import (
	"container/list"
	"context"
	"sync"
	"time"

	"earshot/internal/publicid"
)

// PayloadMemory bounds the bytes of payloads that attempts hold. Room is taken before a
// payload is read from the database, and given back when its attempt is over. An
// organization may hold as much as is left for all: alone half, and however many others
// do so too, the next one finds some.
type PayloadMemory struct {
	rules rules

	mu   sync.Mutex
	used int
	// held is by organization, without those that hold nothing.
	held map[publicid.Organization]int
	// waiting are *payloadWait, in the order in which they came.
	waiting *list.List
}

type payloadWait struct {
	organization publicid.Organization
	bytes        int
	granted      chan struct{}
}

// NewPayloadMemory is that of a process.
func NewPayloadMemory() *PayloadMemory { return newPayloadMemory(production()) }

func newPayloadMemory(r rules) *PayloadMemory {
	return &PayloadMemory{rules: r, held: map[publicid.Organization]int{}, waiting: list.New()}
}

// Wait is how long an attempt is put off at least that found no room.
func (m *PayloadMemory) Wait() time.Duration { return m.rules.jitter(m.rules.memoryWait) }

// Acquire waits for room until the context ends, and returns the function that gives it
// back, or nil. A payload that were larger than half of all would count as half, so that it
// gets through.
func (m *PayloadMemory) Acquire(ctx context.Context, organization publicid.Organization, bytes int) (release func()) {
	w := &payloadWait{organization: organization, bytes: min(bytes, m.rules.payloadMemoryMax/2), granted: make(chan struct{})}
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

// grant gives room to all who wait and find it, each organization's in their order.
func (m *PayloadMemory) grant() {
	behind := map[publicid.Organization]bool{}
	for place := m.waiting.Front(); place != nil; {
		w, next := place.Value.(*payloadWait), place.Next()
		if behind[w.organization] || m.held[w.organization]+w.bytes > m.rules.payloadMemoryMax-m.used-w.bytes {
			behind[w.organization] = true
		} else {
			m.waiting.Remove(place)
			m.used += w.bytes
			m.held[w.organization] += w.bytes
			close(w.granted)
		}
		place = next
	}
}

// leave ends a wait, unless it was granted in the meantime.
func (m *PayloadMemory) leave(place *list.Element, w *payloadWait) bool {
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

func (m *PayloadMemory) release(w *payloadWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= w.bytes
	if m.held[w.organization] -= w.bytes; m.held[w.organization] == 0 {
		delete(m.held, w.organization)
	}
	m.grant()
}
