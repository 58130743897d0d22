package store

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// ErrBusy is returned by Enter where an organization's other transactions took too
// long to end.
var ErrBusy = errors.New("the organization has too many transactions under way")

// roomTimeout is some hundred times what a transaction takes, and less than callers
// mostly wait.
const roomTimeout = 5 * time.Second

// rooms bounds the transactions that each organization has under way in this
// process, so that those that wait for one hot row hold only a part of the pool,
// and key look-ups and everybody else find connections.
type rooms struct {
	size int

	mu sync.Mutex
	of map[publicid.Organization]*room
}

type room struct {
	places chan struct{}
	// visitors are in it or wait for it; without any it is forgotten.
	visitors int
}

// Enter waits for one of the organization's places for transactions, which are half
// of the pool, and returns ErrBusy after some seconds. It holds no connection
// meanwhile.
func (s *Store) Enter(ctx context.Context, of publicid.Organization) (leave func(), err error) {
	return s.rooms.enter(ctx, of)
}

func (r *rooms) enter(ctx context.Context, of publicid.Organization) (leave func(), err error) {
	in := r.visit(of)
	defer func() {
		if err != nil {
			r.forget(of, in)
		}
	}()
	timeout := time.NewTimer(roomTimeout)
	defer timeout.Stop()
	select {
	case in.places <- struct{}{}:
		return func() { <-in.places; r.forget(of, in) }, nil
	case <-timeout.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "wait for other transactions")
	}
}

func (r *rooms) visit(of publicid.Organization) *room {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.of[of]
	if in == nil {
		in = &room{places: make(chan struct{}, r.size)}
		r.of[of] = in
	}
	in.visitors++
	return in
}

func (r *rooms) forget(of publicid.Organization, in *room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.visitors--; in.visitors == 0 {
		delete(r.of, of)
	}
}
