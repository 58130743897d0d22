package feedback

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sync/semaphore"

	"earshot/internal/problem"
)

const (
	// roomForPages is what pages of large rows take of a process together, while they
	// are loaded and until their clients have read them: ten of the largest.
	roomForPages = 256 << 20
	// Pages with less in them always have room: those of all 2,048 connections hold
	// 64 MiB of rows, and nobody who doesn't read large ones keeps others from these.
	freePage = 32 << 10
	// roomTimeout is far more than a client that reads takes for a page, and less than
	// callers mostly wait.
	roomTimeout = 5 * time.Second
)

// room is what the answer to one request holds of the room for pages.
type room struct {
	of    *semaphore.Weighted
	taken int64
}

type roomKey struct{}

// Answering bounds the memory of what the context's use cases return: a page of large
// rows takes its room, and waits for it, until over is called, which is when the answer
// was written. Pages in a context without it aren't bounded. The use cases of a context
// may not run at the same time.
func (s *Service) Answering(ctx context.Context) (_ context.Context, over func()) {
	r := &room{of: s.pages}
	return context.WithValue(ctx, roomKey{}, r), r.leave
}

func (r *room) leave() {
	r.of.Release(r.taken)
	r.taken = 0
}

// takeRoom waits until there is room for rows of so many bytes, and refuses when there
// is none for long. What the request had taken before is free again.
func takeRoom(ctx context.Context, rows int) error {
	r, ok := ctx.Value(roomKey{}).(*room)
	if !ok {
		return nil
	}
	r.leave()
	if rows <= freePage {
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
		return problem.New(problem.RateLimited, "Too many large answers are under way; try again later, or with a smaller limit.")
	}
	r.taken = need
	return nil
}
