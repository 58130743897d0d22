package change

import (
	"context"
	"log/slog"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/trace"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/internal/failpoint"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// Runner makes changes. It is safe for concurrent use.
type Runner struct {
	store    *postgres.DB
	dispatch Dispatcher
	secrets  *seal.Box
	settings Settings
}

// Settings are the options of a deployment.
type Settings struct {
	// SubscribedOnly drops events without a subscriber. There is no feed then.
	SubscribedOnly bool
	// SubscriberMails is true if there is a public address for the links in e-mails to end-users.
	// Without it, no such e-mails are sent.
	SubscriberMails bool
	// Log gets the failures of batches. nil discards them.
	Log *slog.Logger
}

// NewRunner makes a runner that passes the effects of changes to the dispatcher. The box encrypts
// the answers of requests with an idempotency key. It may be nil if there are no such requests.
func NewRunner(s *postgres.DB, d Dispatcher, secrets *seal.Box, settings Settings) *Runner {
	return &Runner{store: s, dispatch: d, secrets: secrets, settings: settings}
}

func (r *Runner) log() *slog.Logger {
	if r.settings.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.settings.Log
}

// busy turns a timeout of the transaction slot into a problem for the caller.
func busy(err error) error {
	if errors.Is(err, postgres.ErrBusy) {
		return problem.New(problem.RateLimited, "Too many changes of this organization wait for each other; try again later.")
	}
	return err
}

// RunForService is Run for the service itself. It ignores the organization's billing state.
func (r *Runner) RunForService(
	ctx context.Context, organization publicid.Organization, fn func(ctx context.Context, c *Change) error,
) error {
	ctx = postgres.WithOrganization(ctx, organization)
	found, err := r.store.Client().Organization.Get(ctx, organization)
	if err != nil {
		return errors.Wrap(err, "load the organization")
	}
	_, err = run(ctx, r, &Caller{Organization: found}, Request[struct{}]{}, func(c *Change) (struct{}, error) {
		return struct{}{}, fn(ctx, c)
	})
	return err
}

// dispatchOf dispatches the effects of a change that is committed, or may be. If the rows do not
// exist, the workflows end. Without this call the sweep would start them a minute later. It also
// does so if the process dies here.
func (r *Runner) dispatchOf(ctx context.Context, c *Change) {
	failpoint.Hit(failpoint.AfterCommit)
	for _, r := range c.after {
		failpoint.HitRequest(r.Workflow, r.Signal)
	}
	if len(c.after) > 0 {
		r.dispatch.Queue(c.after)
	}
	if len(c.deliveries) > 0 {
		c.trace(ctx)
		r.dispatch.Deliver(c.deliveries)
	}
}

// trace makes the deliveries continue the change's trace.
func (c *Change) trace(ctx context.Context) {
	of := trace.SpanContextFromContext(ctx) // also if the span isn't sampled: then the deliveries are not sampled either
	if !of.IsValid() {
		return
	}
	for i := range c.deliveries {
		c.deliveries[i].Trace = &of
	}
}

// MayWrite returns problem.Forbidden while the organization's bills are unpaid.
func MayWrite(caller *Caller) error {
	if IsReadOnly(caller.Organization) {
		return problem.BillingReadOnly.Problem()
	}
	return nil
}

// IsReadOnly reports whether the billing state of an organization forbids changes.
func IsReadOnly(o *db.Organization) bool { return o.BillingState == organization.BillingStateReadOnly }

// Unavailable reports whether a use case failed, without changing anything, because it would have
// waited too long.
func Unavailable(err error) bool { return postgres.Unavailable(err) }
