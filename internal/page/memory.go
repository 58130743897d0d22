package page

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sync/semaphore"

	"earshot/internal/memory"
	"earshot/internal/problem"
)

// answerMemoryTimeout is far more than a client that reads takes for a page, and less
// than callers mostly wait.
const answerMemoryTimeout = 5 * time.Second

// Memory is what large answers of a process may take together.
type Memory struct{ of *semaphore.Weighted }

// NewMemory makes one, of the size that the process's budget says.
func NewMemory() *Memory { return &Memory{semaphore.NewWeighted(memory.Answers)} }

// Reservation makes a reservation of nothing yet. A list that is asked with it
// (Query.Memory) reserves what its rows come to, and waits for it, before it loads
// them. It holds until Release, which is when the answer was written.
func (m *Memory) Reservation() *Reservation { return &Reservation{of: m.of} }

// Reservation is what the answer to one request has reserved of the memory for large
// answers. Nil is of no bound.
type Reservation struct {
	of       *semaphore.Weighted
	reserved int64
}

// Release gives back what was reserved.
func (m *Reservation) Release() {
	m.of.Release(m.reserved)
	m.reserved = 0
}

// Fits reports whether there is memory for an answer of so many bytes, and reserves it
// where no list has. It doesn't wait: the answer is there already.
func (m *Reservation) Fits(answer int) bool {
	if m.reserved > 0 || answer <= memory.FreeAnswer {
		return true
	}
	// What it was made of, and a buffer that doubles as it grows.
	need := int64(3 * answer)
	if !m.of.TryAcquire(need) {
		return false
	}
	m.reserved = need
	return true
}

// NoMemory is the problem of a read whose answer finds none.
func NoMemory() *problem.Error {
	return problem.New(problem.RateLimited, "Too many large answers are under way; try again later, or with a smaller limit.")
}

// reserve waits until there is memory for rows of so many bytes, and refuses when there
// is none for long. What was reserved before is free again.
func (m *Reservation) reserve(ctx context.Context, rows int) error {
	if m == nil {
		return nil
	}
	m.Release()
	if rows <= memory.FreeRows {
		return nil
	}
	// The answer may have six times as many bytes, and its buffer doubles as it grows.
	need := int64(rows + 2*min(6*rows, maxPageBytes))
	waiting, cancel := context.WithTimeout(ctx, answerMemoryTimeout)
	defer cancel()
	if err := m.of.Acquire(waiting, need); err != nil {
		if ctx.Err() != nil {
			return errors.Wrap(ctx.Err(), "wait for other answers")
		}
		return NoMemory()
	}
	m.reserved = need
	return nil
}
