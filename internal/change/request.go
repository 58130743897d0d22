package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/telemetry"
)

// Request has the conditions of a request for its use case, whose result is R. The zero value has no
// conditions.
type Request[R any] struct {
	// Key is nil for a request without an idempotency key.
	Key *Key
	// Answer encodes the result as the answer. A request with a Key needs it: the answer is stored in
	// the transaction of the change.
	Answer func(R) (Answer, error)
	// Match returns an error unless the resource meets the precondition, for example If-Match. It is
	// nil for a request without one.
	Match func(R) error
}

// CheckIfMatch checks the locked resource against the precondition, if there is one. Run fails for a use
// case that does not call it.
func (q Request[R]) CheckIfMatch(c *Change, found R) error {
	return q.CheckIfMatchOf(c, func() (R, error) { return found, nil })
}

// CheckIfMatchOf is CheckIfMatch for a use case that needs less of the resource than the precondition does.
// It calls load only if there is a precondition.
func (q Request[R]) CheckIfMatchOf(c *Change, load func() (R, error)) error {
	if q.Match == nil {
		return nil
	}
	c.matchChecked = true
	found, err := load()
	if err != nil {
		return err
	}
	return q.Match(found)
}

// Run runs fn in one transaction for the context's caller and dispatches its effects after the
// commit. It refuses if the organization may not write, or if it waits too long for the
// organization's other changes. If the database aborts the transaction because of others, for
// example in a deadlock, fn runs again from its start. A request whose key was used before gets a
// ReplayedError.
func Run[R any](ctx context.Context, r *Runner, q Request[R], fn func(c *Change) (R, error)) (out R, err error) {
	if err := MayWrite(CallerOf(ctx)); err != nil {
		return out, err
	}
	return RunUnpaid(ctx, r, q, fn)
}

// RunUnpaid is Run that also works in the read-only billing state. It serves use cases that only
// stop something, such as a leaked key or a webhook.
func RunUnpaid[R any](ctx context.Context, r *Runner, q Request[R], fn func(c *Change) (R, error)) (out R, err error) {
	out, err = run(ctx, r, CallerOf(ctx), q, fn)
	return out, busy(err)
}

// run runs fn in one transaction for a caller.
func run[R any](ctx context.Context, r *Runner, caller *Caller, q Request[R], fn func(c *Change) (R, error)) (out R, err error) {
	release, err := r.store.AcquireTransaction(ctx, caller.Organization.ID)
	if err != nil {
		return out, err
	}
	defer release()
	ctx, span := telemetry.Span(ctx, "commit")
	defer span.End()
	var keys []Key
	if q.Key != nil {
		keys = []Key{*q.Key}
	}
	c, of := &Change{}, caller.Organization.ID
	made, err := inTxWithRows(ctx, r.store, of, keys, func(tx *db.Tx, looked takenKeys) (last atCommit, err error) {
		if q.Key != nil {
			if taken, err := looked(ctx); err != nil {
				return last, err
			} else if taken[q.Key.ID] != nil {
				return last, r.taken(*q.Key, taken[q.Key.ID])
			}
		}
		*c = Change{Tx: tx, Caller: caller, Waits: true, settings: r.settings}
		if out, err = fn(c); err != nil {
			return last, err
		}
		if q.Match != nil && !c.matchChecked {
			return last, errors.New("a use case changes something without a look at the precondition")
		}
		var kept []keptAnswer
		if q.Key != nil {
			a, err := q.Answer(out)
			if err != nil {
				return last, err
			}
			kept = append(kept, r.keptAnswer(*q.Key, a))
		}
		return c.finish(ctx, kept)
	})
	if err == nil || postgres.Unknown(err) {
		for _, d := range made {
			c.deliveries = append(c.deliveries, pending(of, d))
		}
		r.dispatchOf(ctx, c)
		logDeliveryIDs(ctx, c.deliveries)
	}
	if err != nil {
		var none R
		return none, err
	}
	return out, nil
}
