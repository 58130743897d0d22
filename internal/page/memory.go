package page

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/memory"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// answerMemoryTimeout is far more than a client that reads takes for a page, and less
// than callers mostly wait.
const answerMemoryTimeout = 5 * time.Second

// Memory is what large answers of a process may take together. An organization may hold
// as much as is left for all.
type Memory struct {
	of *memory.Shared[publicid.Organization]
}

// NewMemory makes one, of the size that the process's budget says.
func NewMemory() *Memory { return NewMemoryOf(memory.Answers) }

// NewMemoryOf makes one of so many bytes.
func NewMemoryOf(bytes int) *Memory { return &Memory{memory.NewShared[publicid.Organization](bytes)} }

// Reservation makes a reservation of nothing yet, for an answer to an organization. A
// list that is asked with it (Query.Memory) reserves what its rows come to, and waits for
// it, before it loads them. It holds until Release, which is when the answer was written.
func (m *Memory) Reservation(organization publicid.Organization) *Reservation {
	return &Reservation{of: m.of, organization: organization}
}

// Reservation is what the answer to one request has reserved of the memory for large
// answers. Nil is of no bound.
type Reservation struct {
	of           *memory.Shared[publicid.Organization]
	organization publicid.Organization
	release      func() // nil where nothing is reserved
}

// Release gives back what was reserved.
func (m *Reservation) Release() {
	if m.release != nil {
		m.release()
		m.release = nil
	}
}

// Fits reports whether there is memory for an answer of so many bytes, and reserves it
// where no list has. It doesn't wait: the answer is there already.
func (m *Reservation) Fits(answer int) bool {
	if m.release != nil || answer <= memory.FreeAnswer {
		return true
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	// What it was made of, and a buffer that doubles as it grows.
	m.release = m.of.Acquire(now, m.organization, 3*answer)
	return m.release != nil
}

// NoMemory is the problem of a read whose answer finds none.
func NoMemory() *problem.Error {
	return problem.New(problem.RateLimited, "Too many large answers are under way; try again later, or with a smaller limit.")
}

// Reserve waits until there is memory for rows of so many bytes, and refuses when there
// is none for long. What was reserved before is free again.
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
	// The answer may have six times as many bytes, and its buffer doubles as it grows.
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
