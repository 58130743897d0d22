// Package change runs a use case in one transaction and starts the work that follows after the
// commit: deliveries, recoveries and e-mails, for example. README.md states the rules for all use
// cases and the order of locks.
package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Change is one transaction of a use case with its effects.
type Change struct {
	*db.Tx
	// Caller made the request. In a batch it is only the organization.
	Caller *Caller
	// Waits is true if the change waits for rows that other transactions hold, and false if it skips
	// them.
	Waits bool
	// Again is true if an earlier try of the transaction failed because of another transaction.
	Again    bool
	settings Settings
	// judged is true once the use case has looked at the request's precondition.
	judged bool

	recorded   []store.EventRow
	audited    []audited
	deliveries []PendingDelivery
	schedules  []ScheduledEntry
	recoveries []RunningRecovery
	// subjectRequests start after the commit.
	subjectRequests []RunningSubjectRequest
	backfills       []RunningBackfill
	// streaks are the webhooks whose failure streak the change ended.
	streaks []publicid.Webhook
	// asked are interactions that now wait for a confirmation. Confirmed are interactions that were
	// confirmed.
	asked, confirmed []PendingInteraction
	// tells is true if the change causes e-mails to end-users.
	tells bool
}

// EndStreak ends the webhook's failure streak, if it has one, after the commit.
func (c *Change) EndStreak(hook *db.Webhook) {
	if hook.ConsecutiveFailures > 0 {
		c.streaks = append(c.streaks, hook.ID)
	}
}

// PublishWhenDue schedules the publication of an entry, after the commit.
func (c *Change) PublishWhenDue(e ScheduledEntry) { c.schedules = append(c.schedules, e) }

// StartRecovery starts a recovery, after the commit.
func (c *Change) StartRecovery(r RunningRecovery) { c.recoveries = append(c.recoveries, r) }

// AskToConfirm mails the confirmation link of an interaction, after the commit.
func (c *Change) AskToConfirm(i PendingInteraction) { c.asked = append(c.asked, i) }

// Confirmed reports to the interaction's workflow that it was confirmed, after the commit.
func (c *Change) Confirmed(i PendingInteraction) { c.confirmed = append(c.confirmed, i) }

// StartSubjectRequest starts an export or an erasure, after the commit.
func (c *Change) StartSubjectRequest(r RunningSubjectRequest) {
	c.subjectRequests = append(c.subjectRequests, r)
}

// StartBackfill starts a search for contacts in old activity, after the commit.
func (c *Change) StartBackfill(r RunningBackfill) { c.backfills = append(c.backfills, r) }

// LockOrganization serializes the changes that count towards a cap of the organization.
func (c *Change) LockOrganization(ctx context.Context) error {
	if _, err := c.Organization.Query().ForUpdate(store.NoKeyUpdate).Only(ctx); err != nil {
		return errors.Wrap(err, "lock the organization")
	}
	return nil
}
