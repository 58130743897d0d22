package fairness

import (
	"time"

	"earshot/internal/memory"
	"earshot/internal/publicid"
)

// PayloadMemory bounds the bytes of payloads that attempts hold. Room is taken before a
// payload is read from the database, and given back when its attempt is over.
type PayloadMemory struct {
	*memory.Shared[publicid.Organization]
	rules rules
}

// NewPayloadMemory is that of a process.
func NewPayloadMemory() *PayloadMemory { return newPayloadMemory(production()) }

func newPayloadMemory(r rules) *PayloadMemory {
	return &PayloadMemory{memory.NewShared[publicid.Organization](r.payloadMemoryMax), r}
}

// Wait is how long an attempt is put off at least that found no room.
func (m *PayloadMemory) Wait() time.Duration { return m.rules.jitter(m.rules.memoryWait) }
