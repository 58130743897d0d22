// Package inflight limits the concurrent operations of each key in a process, so that one key can't
// use up a shared resource.
package inflight

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

// ErrBusy is returned by Limit.Acquire if no slot of the key became free in time.
var ErrBusy = errors.New("too many are under way")

// Limit bounds the concurrent operations of each key. Callers wait for a free slot.
type Limit[K comparable] struct {
	size int
	wait time.Duration

	mu sync.Mutex
	of map[K]*slots
}

// slots are the slots of one key.
type slots struct {
	taken chan struct{}
	// users counts the callers that have a slot or wait for one. At zero the slots are deleted.
	users int
}

// NewLimit makes a limit with size slots for each key. A caller waits at most for the given time.
func NewLimit[K comparable](size int, wait time.Duration) *Limit[K] {
	return &Limit[K]{size: size, wait: wait, of: map[K]*slots{}}
}

// Acquire waits for a free slot of the key. It returns ErrBusy if that takes too long.
func (l *Limit[K]) Acquire(ctx context.Context, of K) (release func(), err error) {
	s := l.use(of)
	defer func() {
		if err != nil {
			l.forget(of, s)
		}
	}()
	release = func() { <-s.taken; l.forget(of, s) }
	select { // a free slot counts even if the time to wait is over
	case s.taken <- struct{}{}:
		return release, nil
	default:
	}
	timeout := time.NewTimer(l.wait)
	defer timeout.Stop()
	select {
	case s.taken <- struct{}{}:
		return release, nil
	case <-timeout.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "wait for others")
	}
}

func (l *Limit[K]) use(of K) *slots {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[of]
	if s == nil {
		s = &slots{taken: make(chan struct{}, l.size)}
		l.of[of] = s
	}
	s.users++
	return s
}

func (l *Limit[K]) forget(of K, s *slots) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.of, of)
	}
}
