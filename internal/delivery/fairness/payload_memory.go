package fairness

import (
	"time"

	"earshot/internal/memory"
	"earshot/internal/publicid"
)

// PayloadMemory limits the bytes of payloads that attempts hold. An attempt takes room before it
// reads the payload from the database, and gives the room back when it ends.
type PayloadMemory struct {
	*memory.Shared[publicid.Organization]
	rules rules
}

// NewPayloadMemory makes the memory of a process.
func NewPayloadMemory() *PayloadMemory { return newPayloadMemory(production()) }

func newPayloadMemory(r rules) *PayloadMemory {
	return &PayloadMemory{memory.NewShared[publicid.Organization](r.payloadMemoryMax), r}
}

// Wait is the minimum time by which an attempt without room is postponed.
func (m *PayloadMemory) Wait() time.Duration { return m.rules.jitter(m.rules.memoryWait) }
