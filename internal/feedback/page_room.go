package feedback

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sync/semaphore"

	"earshot/internal/memory"
	"earshot/internal/problem"
)

// roomTimeout is far more than a client that reads takes for a page, and less than
// callers mostly wait.
const roomTimeout = 5 * time.Second

// Room is what the answer to one request holds of the memory for answers.
type Room struct {
	of    *semaphore.Weighted
	taken int64
}

type roomKey struct{}

// Answering bounds the memory of what the context's use cases return: a page of large
// rows takes its room, and waits for it, until Leave is called, which is when the answer
// was written. Pages in a context without it aren't bounded. The use cases of a context
// may not run at the same time.
func (s *Service) Answering(ctx context.Context) (context.Context, *Room) {
	r := &Room{of: s.pages}
	return context.WithValue(ctx, roomKey{}, r), r
}

// Leave gives back what was taken.
func (r *Room) Leave() {
	r.of.Release(r.taken)
	r.taken = 0
}

// Fits reports whether there is room for an answer of so many bytes, and takes it where
// no page has. It doesn't wait: the answer is in memory already.
func (r *Room) Fits(answer int) bool {
	if r.taken > 0 || answer <= memory.FreeAnswer {
		return true
	}
	// What it was made of, and a buffer that doubles as it grows.
	need := int64(3 * answer)
	if !r.of.TryAcquire(need) {
		return false
	}
	r.taken = need
	return true
}

// NoRoom is the problem of a read whose answer finds none.
func NoRoom() *problem.Error {
	return problem.New(problem.RateLimited, "Too many large answers are under way; try again later, or with a smaller limit.")
}

// takeRoom waits until there is room for rows of so many bytes, and refuses when there
// is none for long. What the request had taken before is free again.
func takeRoom(ctx context.Context, rows int) error {
	r, ok := ctx.Value(roomKey{}).(*Room)
	if !ok {
		return nil
	}
	r.Leave()
	if rows <= memory.FreeAnswer {
		return nil
	}
	// The answer may have six times as many bytes, and its buffer doubles as it grows.
	need := int64(rows + 2*min(6*rows, maxPageBytes))
	waiting, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	if err := r.of.Acquire(waiting, need); err != nil {
		if ctx.Err() != nil {
			return errors.Wrap(ctx.Err(), "wait for other answers")
		}
		return NoRoom()
	}
	r.taken = need
	return nil
}
