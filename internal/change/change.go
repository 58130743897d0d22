// Package change is one transaction of a use case with what it caused: events, the
// deliveries of these, and what else is to be started after the commit. README.md states
// the rules that all use cases keep, and the order of locks.
package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Change is one transaction of a use case with what it caused.
type Change struct {
	*db.Tx
	Caller   *Caller
	settings Settings

	recorded   []recorded
	audited    []audited
	deliveries []PendingDelivery
	schedules  []ScheduledEntry
	recoveries []RunningRecovery
	// subjectRequests are to be done after the commit.
	subjectRequests []RunningSubjectRequest
	backfills       []RunningBackfill
	// streaks are the webhooks whose streak the change ended.
	streaks []publicid.Webhook
	// asked are interactions that wait for a confirmation from now on, confirmed those that do no
	// longer.
	asked, confirmed []PendingInteraction
	// tells is that end-users are to be told of it by e-mail.
	tells bool
}

// EndStreak ends a webhook's streak with the change, if it has one.
func (c *Change) EndStreak(hook *db.Webhook) {
	if hook.ConsecutiveFailures > 0 {
		c.streaks = append(c.streaks, hook.ID)
	}
}

// PublishWhenDue has an entry looked at again when it is due, after the commit.
func (c *Change) PublishWhenDue(e ScheduledEntry) { c.schedules = append(c.schedules, e) }

// StartRecovery has a recovery run, after the commit.
func (c *Change) StartRecovery(r RunningRecovery) { c.recoveries = append(c.recoveries, r) }

// AskToConfirm has the link to an interaction be mailed, after the commit.
func (c *Change) AskToConfirm(i PendingInteraction) { c.asked = append(c.asked, i) }

// Confirmed tells whoever waits for it, after the commit, that an interaction counts.
func (c *Change) Confirmed(i PendingInteraction) { c.confirmed = append(c.confirmed, i) }

// StartSubjectRequest has an export or an erasure done, after the commit.
func (c *Change) StartSubjectRequest(r RunningSubjectRequest) {
	c.subjectRequests = append(c.subjectRequests, r)
}

// StartBackfill has a search for contacts in old activity done, after the commit.
func (c *Change) StartBackfill(r RunningBackfill) { c.backfills = append(c.backfills, r) }

// LockOrganization has the changes under a cap of the organization made one at a time.
func (c *Change) LockOrganization(ctx context.Context) error {
	if _, err := c.Organization.Query().ForUpdate(store.NoKeyUpdate).Only(ctx); err != nil {
		return errors.Wrap(err, "lock the organization")
	}
	return nil
}
