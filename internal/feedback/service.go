// Package feedback is the domain: one file of use cases per noun, and the rules
// they keep. README.md states the rules.
//
// Every use case validates its whole input first and changes nothing when any
// of it is wrong; runs in one transaction; and hands the deliveries that it
// recorded to the Dispatcher after the commit. Problems of the caller come back
// as *problem.Error, anything else is our own fault.
package feedback

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"golang.org/x/sync/semaphore"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/internal/failpoint"
	"earshot/internal/memory"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
)

// Dispatcher starts what follows a change that is committed. It doesn't block on
// the network and has no errors: what it fails to start stays pending in the
// database, where the sweep finds it.
type Dispatcher interface {
	// Deliver starts the delivery of rows.
	Deliver(deliveries []PendingDelivery)
	// PublishWhenDue sees to it that changelog entries are published when they are due.
	PublishWhenDue(entries []ScheduledEntry)
	// RunRecoveries runs recoveries.
	RunRecoveries(recoveries []RunningRecovery)
	// EndFailureStreaks tells whoever follows the webhooks' streaks that they are over.
	EndFailureStreaks(webhooks []publicid.Webhook)
}

// PendingDelivery is what an operator wants to see of a delivery that is under way.
type PendingDelivery struct {
	ID           publicid.Delivery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	EventType    string
	// Host is the receiver's, without path or query, which may hold tokens.
	Host string
}

// ScheduledEntry says that the moment of an entry's publication was set, moved or taken
// away. Whoever waits for it reads the entry.
type ScheduledEntry struct {
	Entry        publicid.ChangelogEntry
	Organization publicid.Organization
}

// Settings are the limits that a deployment chooses.
type Settings struct {
	ContactCapFree, ContactCapPro int
	WebhookCap                    int
	EmailHashKey                  []byte
	// CommentEditWindow is how long after its creation a comment can be edited;
	// 0 is for ever.
	CommentEditWindow time.Duration
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	dispatch Dispatcher
	guard    send.Guard
	secrets  *seal.Box
	settings Settings
	log      *slog.Logger
	// answers is the memory for large ones.
	answers *semaphore.Weighted
}

// New makes the service from its collaborators.
func New(s *store.Store, d Dispatcher, guard send.Guard, secrets *seal.Box, settings Settings, log *slog.Logger) *Service {
	return &Service{
		store: s, dispatch: d, guard: guard, secrets: secrets, settings: settings, log: log,
		answers: semaphore.NewWeighted(memory.Answers),
	}
}

// now is the wall clock at the precision that Postgres keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// change is one transaction of a use case with what it caused.
type change struct {
	*db.Tx
	caller     *Caller
	deliveries []PendingDelivery
	schedules  []ScheduledEntry
	recoveries []RunningRecovery
	// streaks are the webhooks whose streak the change ended.
	streaks []publicid.Webhook
}

// change runs fn in one transaction for the caller in the context and
// dispatches after the commit. It refuses when the organization may not write, and
// when the organization's other changes take too long to end.
// Fn runs again from its start where the database ended it because of a deadlock.
func (s *Service) change(ctx context.Context, fn func(c *change) error) error {
	if err := mayWrite(CallerOf(ctx)); err != nil {
		return err
	}
	return s.changeUnpaid(ctx, fn)
}

// changeUnpaid is change in the read-only billing state too, for what only stops
// something: a key that leaked, or a webhook.
func (s *Service) changeUnpaid(ctx context.Context, fn func(c *change) error) error {
	release, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.perform(ctx, &change{caller: CallerOf(ctx)}, fn)
}

// acquire has the caller have one of the transactions that its organization may have,
// until release is called. Whatever may wait for a row needs one.
func (s *Service) acquire(ctx context.Context) (release func(), err error) {
	release, err = s.store.AcquireTransaction(ctx, CallerOf(ctx).Organization.ID)
	if errors.Is(err, store.ErrBusy) {
		return nil, problem.New(problem.RateLimited, "Too many changes of this organization wait for each other; try again later.")
	}
	return release, err
}

// perform is change for whoever acts, and has acquired a transaction.
func (s *Service) perform(ctx context.Context, c *change, fn func(c *change) error) error {
	err := s.store.InTx(ctx, func(tx *db.Tx) error {
		c.Tx, c.deliveries, c.schedules, c.recoveries, c.streaks = tx, nil, nil, nil, nil
		return fn(c)
	})
	if err != nil {
		return err
	}
	// The process may die here: the rows are committed and pending, the sweep
	// starts them.
	failpoint.Hit(failpoint.AfterCommit)
	if len(c.schedules) > 0 {
		s.dispatch.PublishWhenDue(c.schedules)
	}
	if len(c.recoveries) > 0 {
		s.dispatch.RunRecoveries(c.recoveries)
	}
	if len(c.streaks) > 0 {
		s.dispatch.EndFailureStreaks(c.streaks)
	}
	if len(c.deliveries) > 0 {
		s.dispatch.Deliver(c.deliveries)
		ids := make([]fmt.Stringer, len(c.deliveries))
		for i, d := range c.deliveries {
			ids[i] = d.ID
		}
		Touch(ctx, "deliveryIds", ids...)
	}
	return nil
}

// forService is change for the service itself, in an organization and whatever its
// billing state.
func (s *Service) forService(
	ctx context.Context, organization publicid.Organization, fn func(ctx context.Context, c *change) error,
) error {
	ctx = store.WithOrganization(ctx, organization)
	found, err := s.store.Client().Organization.Get(ctx, organization)
	if err != nil {
		return errors.Wrap(err, "load the organization")
	}
	release, err := s.store.AcquireTransaction(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	c := &change{caller: &Caller{Organization: found}}
	return s.perform(ctx, c, func(c *change) error { return fn(ctx, c) })
}

// Unavailable reports whether a use case failed because it would have waited for too
// long, and has changed nothing.
func Unavailable(err error) bool { return store.Unavailable(err) }

// mayWrite returns problem.Forbidden while the organization's bills are unpaid.
func mayWrite(caller *Caller) error {
	if caller.Organization.BillingState == organization.BillingStateReadOnly {
		return problem.New(problem.Forbidden, "The organization is in a read-only billing state.").
			With("reason", "billing_read_only")
	}
	return nil
}

// The locks that suffice where rows aren't deleted or don't get another id. They
// leave alone the key share lock that Postgres itself takes on a row for each
// insert that refers to it: with plain FOR UPDATE on the organization, every
// event of it would wait, and some for each other.
var (
	// keyShare keeps a row from being deleted.
	keyShare = sql.WithLockClause("FOR KEY SHARE")
	// noKeyUpdate lets one at a time.
	noKeyUpdate = sql.WithLockClause("FOR NO KEY UPDATE")
)

// exists reports whether a query that finds one row at most finds it. Ent's own
// Exist scans the id into a slice, which it can't do with a typed id.
func exists(ctx context.Context, query interface {
	Count(ctx context.Context) (int, error)
},
) (bool, error) {
	n, err := query.Count(ctx)
	return n > 0, err
}
