package postgres

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// ErrBusy is returned by AcquireTransaction if the organization's other transactions took too long.
var ErrBusy = errors.New("the organization has too many transactions under way")

// transactionTimeout is some hundred times as long as a transaction takes, and shorter than most
// callers wait.
const transactionTimeout = 5 * time.Second

// newTransactionLimit limits the transactions that each organization has under way in this process.
// Transactions that wait for one hot row then hold only a part of the pool, and other organizations
// and look-ups of keys still get connections.
func newTransactionLimit(size int) *inflight.Limit[publicid.Organization] {
	return inflight.NewLimit[publicid.Organization](size, transactionTimeout)
}

// AcquireTransaction waits until the organization may have one more transaction under way, and
// returns ErrBusy after some seconds. An organization may use at most half of the pool. It holds no
// connection while it waits.
func (d *DB) AcquireTransaction(ctx context.Context, of publicid.Organization) (release func(), err error) {
	release, err = d.transactions.Acquire(ctx, of)
	if errors.Is(err, inflight.ErrBusy) {
		return nil, ErrBusy
	}
	return release, err
}
