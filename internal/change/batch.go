package change

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/trace"

	"earshot/ent/db"
	"earshot/internal/batch"
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
)

const (
	// BatchMax bounds the memory of a batch, 1 MiB of bodies of 16 KiB at most, and the rows that it
	// keeps locked.
	BatchMax = 64
	// BatchTimeout is some thousand times as long as a batch takes. One change waits as long for a
	// transaction and then for a lock.
	BatchTimeout = 15 * time.Second
	// joinTimeout is how long a change waits for the batch before its own.
	joinTimeout = 5 * time.Second
)

// Write is one kind of write, for one or more callers of an organization.
type Write[In, R any] struct {
	// Apply makes the changes of all inputs and returns their results in the same order. It must not
	// change the inputs, because it may run again. It must write nothing for an input whose result is an
	// Err, because the changes of the others are committed. Its own error ends the transaction for all. After
	// postgres.ErrAgain, all inputs run again in a new one.
	Apply func(ctx context.Context, c *Change, in []In) ([]Result[R], error)
	// Alone reports whether an input gets a transaction of its own. nil is never.
	Alone func(in In) bool
	// SkipsHeld is true if Apply skips rows that other transactions hold, unless the change Waits.
	SkipsHeld bool
}

// Result is the result for one caller.
type Result[R any] struct {
	Out    R
	Err    error
	Events []Event
}

// Event is an event to record. A zero At is the end of the transaction.
type Event struct {
	Type    event.Type
	At      time.Time
	Payload event.Payload
}

// ErrHeld is the result for a caller whose row another transaction holds. The caller's input then
// runs once more, in a batch that waits. After postgres.ErrAgain it runs once more alone.
var ErrHeld = errors.New("another transaction holds the row")

var (
	// errAlone is the outcome for a caller whose input has to run alone.
	errAlone = errors.New("the input has to run alone")
	// errNothing rolls back a transaction that changes nothing, because all callers are refused.
	errNothing = errors.New("all callers are refused")
)

// Batch makes one kind of write. Inputs of an organization that arrive while a transaction is under
// way share the next transaction, because commits are expensive. A lone input runs at once. It is an interface
// for the same reason as batch.Batcher.
type Batch[In, R any] interface {
	// Do makes the change of the context's caller. It refuses and dispatches as Run does.
	Do(ctx context.Context, in In, q Request[R]) (R, error)
	// DoAll is Do for several inputs of one caller, without idempotency keys. The caller has looked at
	// MayWrite. The results have the order of the inputs. An input that has to run alone gets
	// postgres.ErrAgain, and DoAlone runs it.
	DoAll(ctx context.Context, in []In) []batch.Result[R]
	// DoAlone is Do in a transaction of its own.
	DoAlone(ctx context.Context, in In) (R, error)
}

// writer is the implementation of Batch.
type writer[In, R any] struct {
	runner  *Runner
	write   Write[In, R]
	batches *batch.Keyed[batchKey, *entry[In, R], outcome[R]]
}

// batchKey is the common part of the inputs of a transaction. Bulk are the inputs of DoAll. They share no
// transaction with those of Do, because a login must not wait for the rows of an import.
type batchKey struct {
	organization publicid.Organization
	bulk, waits  bool
}

// entry is the input of one caller.
type entry[In, R any] struct {
	in           In
	request      Request[R]
	organization *db.Organization
	trace        *trace.SpanContext
}

// outcome is the result of one caller with the deliveries that it causes.
type outcome[R any] struct {
	out        R
	err        error
	deliveries []PendingDelivery
}

// NewBatch makes a batch for one kind of write.
func NewBatch[In, R any](r *Runner, w Write[In, R]) Batch[In, R] {
	b := &writer[In, R]{runner: r, write: w}
	b.batches = batch.NewKeyed(func(key batchKey) batch.Batcher[*entry[In, R], outcome[R]] {
		return batch.New(BatchMax, BatchTimeout, func(ctx context.Context, entries []*entry[In, R]) ([]outcome[R], error) {
			return b.together(postgres.WithOrganization(ctx, key.organization), key.waits, entries)
		})
	})
	return b
}

func (b *writer[In, R]) Do(ctx context.Context, in In, q Request[R]) (out R, err error) {
	return b.one(ctx, in, q, func(ctx context.Context, e []*entry[In, R]) outcome[R] { return b.do(ctx, e)[0] })
}

func (b *writer[In, R]) DoAll(ctx context.Context, in []In) []batch.Result[R] {
	ctx, span := telemetry.Span(ctx, "commit")
	defer span.End()
	entries := make([]*entry[In, R], len(in))
	for i := range in {
		entries[i] = newEntry(ctx, in[i], Request[R]{})
	}
	out := make([]batch.Result[R], len(in))
	var deliveries []PendingDelivery
	for i, done := range b.share(ctx, true, entries) {
		deliveries = append(deliveries, done.deliveries...)
		if out[i] = (batch.Result[R]{Out: done.out, Err: busy(done.err)}); errors.Is(done.err, errAlone) {
			out[i].Err = postgres.ErrAgain
		}
	}
	logDeliveryIDs(ctx, deliveries)
	return out
}

func (b *writer[In, R]) DoAlone(ctx context.Context, in In) (out R, err error) {
	return b.one(ctx, in, Request[R]{}, func(ctx context.Context, e []*entry[In, R]) outcome[R] { return b.alone(ctx, e[0]) })
}

// one makes the change of the context's caller in one of the two ways.
func (b *writer[In, R]) one(
	ctx context.Context, in In, q Request[R], do func(ctx context.Context, e []*entry[In, R]) outcome[R],
) (out R, err error) {
	if err := MayWrite(CallerOf(ctx)); err != nil {
		return out, err
	}
	if q.Match != nil {
		return out, errors.New("a batch looks at no precondition")
	}
	ctx, span := telemetry.Span(ctx, "commit")
	defer span.End()
	done := do(ctx, []*entry[In, R]{newEntry(ctx, in, q)})
	logDeliveryIDs(ctx, done.deliveries)
	return done.out, busy(done.err)
}

func newEntry[In, R any](ctx context.Context, in In, q Request[R]) *entry[In, R] {
	e := &entry[In, R]{in: in, request: q, organization: CallerOf(ctx).Organization}
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		e.trace = &of
	}
	return e
}

// do runs entries of one organization in batches, and alone where a batch cannot tell an outcome.
func (b *writer[In, R]) do(ctx context.Context, entries []*entry[In, R]) []outcome[R] {
	done := b.share(ctx, false, entries)
	for i, e := range entries {
		if errors.Is(done[i].err, errAlone) || errors.Is(done[i].err, postgres.ErrAgain) {
			done[i] = b.alone(ctx, e)
		}
	}
	return done
}

func (b *writer[In, R]) alone(ctx context.Context, e *entry[In, R]) outcome[R] {
	done, err := b.run(ctx, true, []*entry[In, R]{e})
	if err != nil {
		return outcome[R]{err: err}
	}
	return done[0]
}

// share runs entries of one organization in batches. The outcome of an entry that has to run alone is
// errAlone or postgres.ErrAgain.
func (b *writer[In, R]) share(ctx context.Context, bulk bool, entries []*entry[In, R]) []outcome[R] {
	done := make([]outcome[R], len(entries))
	for i, e := range entries {
		if b.write.Alone != nil && b.write.Alone(e.in) {
			done[i].err = errAlone
		}
	}
	with := func(want error) (which []int) {
		for i := range done {
			if errors.Is(done[i].err, want) {
				which = append(which, i)
			}
		}
		return which
	}
	b.join(ctx, batchKey{bulk: bulk, waits: !b.write.SkipsHeld}, entries, with(nil), done)
	b.join(ctx, batchKey{bulk: bulk, waits: true}, entries, with(ErrHeld), done)
	return done
}

// join adds some of the entries to the next batch of their organization, and waits for their outcomes.
func (b *writer[In, R]) join(ctx context.Context, key batchKey, entries []*entry[In, R], which []int, done []outcome[R]) {
	if len(which) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, postgres.ErrBusy)
	defer cancel()
	some := make([]*entry[In, R], len(which))
	for n, i := range which {
		some[n] = entries[i]
	}
	key.organization = some[0].organization.ID
	for n, r := range b.batches.DoAllOrNot(ctx, key, some) {
		if r.Err != nil {
			r.Out = outcome[R]{err: r.Err}
		}
		done[which[n]] = r.Out
	}
}

// together runs entries of several callers. If the transaction fails because of one of them, nothing
// is changed. Each entry then runs alone to get its own outcome.
func (b *writer[In, R]) together(ctx context.Context, waits bool, entries []*entry[In, R]) (outcomes []outcome[R], err error) {
	alone := make([]outcome[R], len(entries))
	for i := range alone {
		alone[i].err = errAlone
	}
	// The bug may need several inputs, and then the runs alone do not show it.
	defer func() {
		if what := recover(); what != nil {
			b.runner.log().ErrorContext(ctx, "a batch panicked, and its inputs run alone", "panic", what, "stack", string(debug.Stack()))
			outcomes, err = alone, nil
		}
	}()
	outcomes, err = b.run(ctx, waits, entries)
	if err == nil || postgres.Unknown(err) || postgres.Unavailable(err) || errors.Is(err, postgres.ErrBusy) {
		return outcomes, err
	}
	b.runner.log().WarnContext(ctx, "a batch failed, and its inputs run alone", "error", err)
	return alone, nil
}

// run makes the changes of entries in one transaction, and dispatches their effects.
func (b *writer[In, R]) run(ctx context.Context, waits bool, entries []*entry[In, R]) ([]outcome[R], error) {
	r, of := b.runner, entries[0].organization
	release, err := r.store.AcquireTransaction(ctx, of.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	var keys []Key
	for _, e := range entries {
		if e.request.Key != nil {
			keys = append(keys, *e.request.Key)
		}
	}
	c, outcomes := &Change{}, make([]outcome[R], len(entries))
	// causes are the numbers of the entries that cause an event. An event of Change.Record is missing:
	// only a lone input causes it, which has the number 0.
	causes, again := map[publicid.Event]int{}, false
	made, err := inTxWithRows(ctx, r.store, of.ID, keys, func(tx *db.Tx, taken takenKeys) (atCommit, error) {
		clear(outcomes)
		*c = Change{Tx: tx, Caller: &Caller{Organization: of}, Waits: waits, Again: again, settings: r.settings}
		again = true
		return b.apply(ctx, c, entries, taken, outcomes, causes)
	})
	switch {
	case errors.Is(err, errNothing):
		return outcomes, nil
	case err == nil, postgres.Unknown(err):
		for _, d := range made {
			i, d := causes[d.Event], pending(of.ID, d)
			d.Trace = entries[i].trace
			outcomes[i].deliveries = append(outcomes[i].deliveries, d)
			c.deliveries = append(c.deliveries, d)
		}
		r.dispatchOf(ctx, c)
	}
	return outcomes, err
}

// apply makes the changes of entries whose keys are free. It returns their events and answers. The first
// try of a change that does not wait assumes that all keys are free, because then the look for them costs no
// round trip. If one is taken, that try is rolled back.
func (b *writer[In, R]) apply(
	ctx context.Context, c *Change, entries []*entry[In, R], looked takenKeys, outcomes []outcome[R], causes map[publicid.Event]int,
) (last atCommit, err error) {
	var taken map[[32]byte]error
	assumed := !c.Again && !c.Waits
	if !assumed {
		if taken, err = looked(ctx); err != nil {
			return last, err
		}
	}
	free := b.free(entries, taken, outcomes)
	results := make([]Result[R], 0, len(free))
	if len(free) > 0 {
		in := make([]In, len(free))
		for n, i := range free {
			in[n] = entries[i].in
		}
		results, err = b.write.Apply(ctx, c, in)
		if assumed {
			taken, failed := looked(ctx)
			if len(taken) > 0 {
				return last, postgres.ErrAgain
			}
			err = cmp.Or(err, failed)
		}
		if err != nil {
			return last, err
		}
		if len(results) != len(in) {
			return last, errors.Errorf("a batch of %d has %d results", len(in), len(results))
		}
	}
	made := false
	var kept []keptAnswer
	for n, result := range results {
		i := free[n]
		outcomes[i] = outcome[R]{out: result.Out, err: result.Err}
		if result.Err != nil {
			continue
		}
		made = true
		if q := entries[i].request; q.Key != nil {
			a, err := q.Answer(result.Out)
			if err != nil {
				return last, err
			}
			kept = append(kept, b.runner.keptAnswer(*q.Key, a))
		}
		for _, e := range result.Events {
			id, err := c.record(e)
			if err != nil {
				return last, err
			}
			causes[id] = i
		}
	}
	switch {
	case !made && len(entries) == 1 && c.Waits && errors.Is(outcomes[0].err, postgres.ErrAgain):
		return last, postgres.ErrAgain // nothing is left to try but a new start
	case !made:
		return last, errNothing
	}
	if last, err = c.finish(ctx, kept); err == nil {
		failpoint.Hit(failpoint.BeforeGroupCommit)
	}
	return last, err
}

// free returns the numbers of the entries without a taken key, and sets the outcomes of the others.
// Of two entries with the same key, the second is refused.
func (b *writer[In, R]) free(entries []*entry[In, R], taken map[[32]byte]error, outcomes []outcome[R]) (free []int) {
	used := map[[32]byte]bool{}
	for i, e := range entries {
		if key := e.request.Key; key != nil {
			err := taken[key.ID]
			if used[key.ID] {
				err = errKeyInUse
			}
			if err != nil {
				outcomes[i].err = b.runner.taken(*key, err)
				continue
			}
			used[key.ID] = true
		}
		free = append(free, i)
	}
	return free
}

func logDeliveryIDs(ctx context.Context, deliveries []PendingDelivery) {
	ids := make([]fmt.Stringer, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.ID
	}
	LogIDs(ctx, "deliveryIds", ids...)
}
