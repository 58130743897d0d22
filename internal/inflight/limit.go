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
	wait time.Duration

	mu sync.Mutex
	// slots counts the callers that have a slot or wait for one.
	slots States[K, chan struct{}]
}

// NewLimit makes a limit with size slots for each key. A caller waits at most for the given time.
func NewLimit[K comparable](size int, wait time.Duration) *Limit[K] {
	return &Limit[K]{wait: wait, slots: NewStates[K](func() chan struct{} { return make(chan struct{}, size) })}
}

// Acquire waits for a free slot of the key. It returns ErrBusy if that takes too long.
func (l *Limit[K]) Acquire(ctx context.Context, of K) (release func(), err error) {
	slots := l.use(of)
	defer func() {
		if err != nil {
			l.forget(of)
		}
	}()
	release = func() { <-slots; l.forget(of) }
	select { // a free slot counts even if the time to wait is over
	case slots <- struct{}{}:
		return release, nil
	default:
	}
	timeout := time.NewTimer(l.wait)
	defer timeout.Stop()
	select {
	case slots <- struct{}{}:
		return release, nil
	case <-timeout.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "wait for others")
	}
}

func (l *Limit[K]) use(of K) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots.Up(of)
}

func (l *Limit[K]) forget(of K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.Down(of)
}
