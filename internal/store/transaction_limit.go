package store

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// ErrBusy is returned by AcquireTransaction where an organization's other transactions took too
// long to end.
var ErrBusy = errors.New("the organization has too many transactions under way")

// transactionTimeout is some hundred times what a transaction takes, and less than callers
// mostly wait.
const transactionTimeout = 5 * time.Second

// newTransactionLimit bounds the transactions that each organization has under way in this
// process, so that those that wait for one hot row hold only a part of the pool,
// and key look-ups and everybody else find connections.
func newTransactionLimit(size int) *inflight.Limit[publicid.Organization] {
	return inflight.NewLimit[publicid.Organization](size, transactionTimeout)
}

// AcquireTransaction waits until the organization may have one more transaction under
// way, of as many as half of the pool, and returns ErrBusy after some seconds. It holds
// no connection meanwhile.
func (s *Store) AcquireTransaction(ctx context.Context, of publicid.Organization) (release func(), err error) {
	release, err = s.transactions.Acquire(ctx, of)
	if errors.Is(err, inflight.ErrBusy) {
		return nil, ErrBusy
	}
	return release, err
}
