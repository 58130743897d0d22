package activities

import (
	"container/list"
	"context"
	"sync"

	"earshot/internal/publicid"
	"earshot/internal/send"
)

// payloadMemoryMax is the memory that the payloads of all attempts under way in this
// process take together, in bytes. An organization alone has half of it, 64 MiB: a webhook's
// 64 attempts of the largest payload there is, 768 KiB, take 48 MiB, so one receiver that
// hangs doesn't keep the organization's others out. Payloads of 2 KiB, as most are, never
// come near: 65,000 of them would have to be under way.
const payloadMemoryMax = 128 << 20

// memoryWait is how long an attempt is put off at least that found no room: as long as
// those under way may take, because they have it until then.
const memoryWait = send.AttemptTimeout

// payloadMemory bounds the bytes of payloads that attempts hold. Room is taken before a
// payload is read from the database, and given back when its attempt is over. An
// organization may hold as much as is left for all: alone half, and however many others
// do so too, the next one finds some.
type payloadMemory struct {
	size int

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

func newPayloadMemory(size int) *payloadMemory {
	return &payloadMemory{size: size, held: map[publicid.Organization]int{}, waiting: list.New()}
}

// acquire waits for room until the context ends, and returns the function that gives it
// back, or nil. A payload that were larger than half of all would count as half, so that it
// gets through.
func (m *payloadMemory) acquire(ctx context.Context, organization publicid.Organization, bytes int) (release func()) {
	w := &payloadWait{organization: organization, bytes: min(bytes, m.size/2), granted: make(chan struct{})}
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
func (m *payloadMemory) grant() {
	behind := map[publicid.Organization]bool{}
	for place := m.waiting.Front(); place != nil; {
		w, next := place.Value.(*payloadWait), place.Next()
		if behind[w.organization] || m.held[w.organization]+w.bytes > m.size-m.used-w.bytes {
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
func (m *payloadMemory) leave(place *list.Element, w *payloadWait) bool {
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

func (m *payloadMemory) release(w *payloadWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= w.bytes
	if m.held[w.organization] -= w.bytes; m.held[w.organization] == 0 {
		delete(m.held, w.organization)
	}
	m.grant()
}
