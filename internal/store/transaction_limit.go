package store

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// ErrBusy is returned by AcquireTransaction where an organization's other transactions took too
// long to end.
var ErrBusy = errors.New("the organization has too many transactions under way")

// transactionTimeout is some hundred times what a transaction takes, and less than callers
// mostly wait.
const transactionTimeout = 5 * time.Second

// transactionLimit bounds the transactions that each organization has under way in this
// process, so that those that wait for one hot row hold only a part of the pool,
// and key look-ups and everybody else find connections.
type transactionLimit struct {
	size int

	mu sync.Mutex
	of map[publicid.Organization]*slots
}

// slots are those of one organization.
type slots struct {
	taken chan struct{}
	// users have one or wait for one; without any they are forgotten.
	users int
}

// AcquireTransaction waits until the organization may have one more transaction under
// way, of as many as half of the pool, and returns ErrBusy after some seconds. It holds
// no connection meanwhile.
func (s *Store) AcquireTransaction(ctx context.Context, of publicid.Organization) (release func(), err error) {
	return s.transactions.acquire(ctx, of)
}

func (l *transactionLimit) acquire(ctx context.Context, of publicid.Organization) (release func(), err error) {
	s := l.use(of)
	defer func() {
		if err != nil {
			l.forget(of, s)
		}
	}()
	timeout := time.NewTimer(transactionTimeout)
	defer timeout.Stop()
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; l.forget(of, s) }, nil
	case <-timeout.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "wait for other transactions")
	}
}

func (l *transactionLimit) use(of publicid.Organization) *slots {
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

func (l *transactionLimit) forget(of publicid.Organization, s *slots) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.of, of)
	}
}
