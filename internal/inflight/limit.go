// Package inflight bounds what each of many has under way in a process, so that one of them
// can't take what is for all.
package inflight

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

// ErrBusy is returned by Limit.Acquire where the others of the same key took too long to end.
var ErrBusy = errors.New("too many are under way")

// Limit bounds what each key has under way. Its callers wait for their turn.
type Limit[K comparable] struct {
	size int
	wait time.Duration

	mu sync.Mutex
	of map[K]*slots
}

// slots are those of one key.
type slots struct {
	taken chan struct{}
	// users have one or wait for one; without any they are forgotten.
	users int
}

// NewLimit makes a limit of so many for each key. A caller waits for that long at most.
func NewLimit[K comparable](size int, wait time.Duration) *Limit[K] {
	return &Limit[K]{size: size, wait: wait, of: map[K]*slots{}}
}

// Acquire waits until the key may have one more under way. It returns ErrBusy where that takes
// too long.
func (l *Limit[K]) Acquire(ctx context.Context, of K) (release func(), err error) {
	s := l.use(of)
	defer func() {
		if err != nil {
			l.forget(of, s)
		}
	}()
	timeout := time.NewTimer(l.wait)
	defer timeout.Stop()
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; l.forget(of, s) }, nil
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
