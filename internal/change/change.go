// Package change runs a use case in one transaction and starts the work that follows after the
// commit: deliveries, recoveries and e-mails, for example. README.md states the rules for all use
// cases and the order of locks.
package change

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
)

// Change is one transaction of a use case with its effects.
type Change struct {
	*db.Tx
	// Caller made the request. In a batch it is only the organization.
	Caller *Caller
	// Waits is true if the change waits for rows that other transactions hold, and false if it skips
	// them.
	Waits bool
	// Again is true if an earlier try of the transaction was rolled back.
	Again    bool
	settings Settings
	// matchChecked is true once the use case has looked at the request's precondition.
	matchChecked bool

	recorded   []eventRow
	audited    []audited
	deliveries []PendingDelivery
	// after are the requests about jobs.
	after []jobs.Request
}

// After sends a request about a job after the commit.
func (c *Change) After(r jobs.Request) {
	if !slices.Contains(c.after, r) {
		c.after = append(c.after, r)
	}
}

// LockOrganization serializes the changes that count towards a cap of the organization.
func (c *Change) LockOrganization(ctx context.Context) error {
	if _, err := c.Organization.Query().ForUpdate(postgres.NoKeyUpdate).Only(ctx); err != nil {
		return errors.Wrap(err, "lock the organization")
	}
	return nil
}
