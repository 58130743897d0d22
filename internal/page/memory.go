package page

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/memory"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// answerMemoryTimeout is far longer than the time in which a client reads a page. It is shorter
// than the usual timeouts of callers.
const answerMemoryTimeout = 5 * time.Second

// Memory is the memory for the large answers of a process. An organization may hold at most as much
// as remains free for all.
type Memory struct {
	of *memory.Shared[publicid.Organization]
}

// NewMemory makes a Memory of the size in the process's budget.
func NewMemory() *Memory { return NewMemoryOf(memory.Answers) }

// NewMemoryOf makes a Memory of a number of bytes.
func NewMemoryOf(bytes int) *Memory { return &Memory{memory.NewShared[publicid.Organization](bytes)} }

// Reservation makes an empty reservation for an answer to an organization. A list that gets it as
// Query.Memory waits until it has reserved the bytes of its rows, and then loads them. Release ends
// the reservation once the answer is written.
func (m *Memory) Reservation(organization publicid.Organization) *Reservation {
	return &Reservation{of: m.of, organization: organization}
}

// Reservation is the memory that the answer to one request has reserved. A nil Reservation has no
// limit.
type Reservation struct {
	of           *memory.Shared[publicid.Organization]
	organization publicid.Organization
	release      func() // nil if nothing is reserved
}

// Release frees the reserved memory.
func (m *Reservation) Release() {
	if m.release != nil {
		m.release()
		m.release = nil
	}
}

// Fits reports whether there is memory for an answer of a number of bytes. It reserves the memory
// unless a list has already done so. It doesn't wait, because the answer already exists.
func (m *Reservation) Fits(answer int) bool {
	if m.release != nil || answer <= memory.FreeAnswer {
		return true
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	// For the data of the answer, and for a buffer that doubles as it grows.
	m.release = m.of.Acquire(now, m.organization, 3*answer)
	return m.release != nil
}

// NoMemory is the problem of a read for whose answer there is no memory.
func NoMemory() *problem.Error {
	return problem.New(problem.RateLimited, "Too many large answers are under way; try again later, or with a smaller limit.")
}

// Reserve waits for memory for rows of a number of bytes. It refuses if there is none within
// answerMemoryTimeout. It first frees the previous reservation.
func (m *Reservation) Reserve(ctx context.Context, rows int) error {
	if m == nil {
		return nil
	}
	m.Release()
	if rows <= memory.FreeRows {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, answerMemoryTimeout)
	defer cancel()
	// The answer may have six times as many bytes as the rows, and its buffer doubles as it grows.
	m.release = m.of.Acquire(waiting, m.organization, rows+2*min(6*rows, MaxBytes))
	switch {
	case m.release != nil:
		return nil
	case ctx.Err() != nil:
		return errors.Wrap(ctx.Err(), "wait for other answers")
	default:
		return NoMemory()
	}
}
