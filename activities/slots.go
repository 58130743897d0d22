package activities

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"earshot/internal/publicid"
)

// slots bounds the attempts that are in flight to each webhook, so that one
// receiver that hangs can't hold what the others need.
type slots struct {
	perWebhook int64

	mu   sync.Mutex
	held map[publicid.Webhook]*slot
}

type slot struct {
	sem *semaphore.Weighted
	// users counts who holds a place or waits for one; the entry goes with the
	// last of them.
	users int
}

func newSlots(perWebhook int64) *slots {
	return &slots{perWebhook: perWebhook, held: map[publicid.Webhook]*slot{}}
}

// acquire waits at most so long for a place. It returns the function that gives
// the place back, or nil and how many were waiting or sending when it gave up.
func (s *slots) acquire(ctx context.Context, webhook publicid.Webhook, wait time.Duration) (release func(), ahead int) {
	s.mu.Lock()
	own := s.held[webhook]
	if own == nil {
		own = &slot{sem: semaphore.NewWeighted(s.perWebhook)}
		s.held[webhook] = own
	}
	own.users++
	s.mu.Unlock()

	leave := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.held, webhook)
		}
		return own.users
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// A free place is taken however short the wait.
	if !own.sem.TryAcquire(1) && own.sem.Acquire(ctx, 1) != nil {
		return nil, leave()
	}
	return func() { own.sem.Release(1); leave() }, 0
}
