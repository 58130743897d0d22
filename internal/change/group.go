package change

import (
	"context"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/trace"

	"earshot/internal/batch"
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/telemetry"
)

const (
	// GroupMax bounds what a group holds in memory, 1 MiB of bodies of 16 KiB at most, and how
	// many rows it keeps locked.
	GroupMax = 64
	// GroupTimeout is how long a group may take: some thousand times what it does, and as long
	// as one change waits for a transaction and then for a lock.
	GroupTimeout = 15 * time.Second
	// joinTimeout is how long a change waits for the group before its own.
	joinTimeout = 5 * time.Second
)

// Group makes one kind of change for many callers: those of an organization that come while a
// transaction is under way share the next one, and a lone one waits for nobody. What is
// out of the ordinary in any way is left to its caller, to be made by Runner.Run alone: so
// the rules of errors are written once, there, and no caller's trouble is its neighbours'.
type Group[In, Out any] struct {
	runner  *Runner
	event   event.Type
	perform func(ctx context.Context, j *Joint, in []In) ([]*Out, error)
	waits   bool
	batches *batch.Keyed[groupKey, *member[In, Out], groupOutcome[Out]]
}

// groupKey is what the members of a transaction have in common.
type groupKey struct {
	organization publicid.Organization
	// wait says that it waits for locks that others hold.
	wait bool
}

type member[In, Out any] struct {
	in    In
	trace *trace.SpanContext
	// key is nil for a request without one; then answer is, too.
	key    *store.IdempotencyKey
	answer func(*Out) (Answer, error)
}

type groupOutcome[Out any] struct {
	out        *Out
	deliveries []PendingDelivery
	// err says that the member's key is taken, and nothing is changed.
	err error
}

// NewGroup makes a group of changes that record events of the type. Perform makes those of an
// organization: it queues what it has to read and lock, has it read (Joint.Read), records the
// events, and queues what is to be written. Its results are in the order of in, nil for what
// is to be made alone. Waits says that what it left out is given once more to a group that
// waits for locks.
func NewGroup[In, Out any](
	r *Runner, of event.Type, waits bool, perform func(ctx context.Context, j *Joint, in []In) ([]*Out, error),
) *Group[In, Out] {
	g := &Group[In, Out]{runner: r, event: of, perform: perform, waits: waits}
	g.batches = batch.NewKeyed(func(key groupKey) *batch.Batcher[*member[In, Out], groupOutcome[Out]] {
		return batch.New(GroupMax, GroupTimeout, func(ctx context.Context, members []*member[In, Out]) ([]groupOutcome[Out], error) {
			return g.together(ctx, key, members)
		})
	})
	return g
}

// Do makes the change of the caller in the context, and refuses and dispatches as
// Runner.Run does. It returns nil where the change is to be made alone: nothing is changed
// then.
func (g *Group[In, Out]) Do(ctx context.Context, in In) (*Out, error) {
	caller := CallerOf(ctx)
	if err := MayWrite(caller); err != nil {
		return nil, err
	}
	m := &member[In, Out]{in: in}
	if i := idempotentOf(ctx); i != nil {
		answer, ok := i.answered.(func(*Out) (Answer, error))
		if !ok {
			return nil, nil
		}
		m.key, m.answer = &i.key, answer
	}
	ctx, span := telemetry.Span(ctx, "commit")
	defer span.End()
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		m.trace = &of
	}
	done, err := g.join(ctx, groupKey{organization: caller.Organization.ID}, m)
	if err == nil && done.out == nil && done.err == nil && g.waits {
		done, err = g.join(ctx, groupKey{organization: caller.Organization.ID, wait: true}, m)
	}
	if err != nil {
		return nil, err
	}
	touchDeliveries(ctx, done.deliveries)
	return done.out, done.err
}

func (g *Group[In, Out]) join(ctx context.Context, key groupKey, m *member[In, Out]) (groupOutcome[Out], error) {
	return Join(ctx, func(ctx context.Context) (groupOutcome[Out], error) { return g.batches.DoOrNot(ctx, key, m) })
}

// Join has a caller wait for a batch that it is done with, for as long as callers wait for
// other changes of their organization, and refuses as Runner.Run does.
func Join[Out any](ctx context.Context, wait func(ctx context.Context) (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, store.ErrBusy)
	defer cancel()
	out, err := wait(ctx)
	return out, busy(err)
}

// DoAll is Do for changes that one caller wants at once, each with an outcome of its own, in
// their order. A request with an idempotency key makes one change, so none of these has one.
func (g *Group[In, Out]) DoAll(ctx context.Context, in []In) ([]batch.Result[*Out], error) {
	caller := CallerOf(ctx)
	if err := MayWrite(caller); err != nil {
		return nil, err
	}
	ctx, span := telemetry.Span(ctx, "commit")
	defer span.End()
	members := make([]*member[In, Out], len(in))
	for i := range in {
		members[i] = &member[In, Out]{in: in[i]}
		if of := trace.SpanContextFromContext(ctx); of.IsValid() {
			members[i].trace = &of
		}
	}
	outcomes, _ := Join(ctx, func(ctx context.Context) ([]batch.Result[groupOutcome[Out]], error) {
		return g.batches.DoAllOrNot(ctx, groupKey{organization: caller.Organization.ID}, members), nil
	})
	out := make([]batch.Result[*Out], len(in))
	var all []PendingDelivery
	for i, o := range outcomes {
		out[i] = batch.Result[*Out]{Out: o.Out.out, Err: busy(o.Err)}
		all = append(all, o.Out.deliveries...)
	}
	touchDeliveries(ctx, all)
	return out, nil
}

// together makes the changes of members of an organization in one transaction.
func (g *Group[In, Out]) together(ctx context.Context, key groupKey, members []*member[In, Out]) ([]groupOutcome[Out], error) {
	release, err := g.runner.store.AcquireTransaction(ctx, key.organization)
	if err != nil {
		return nil, err
	}
	defer release()
	in := make([]In, len(members))
	for i, m := range members {
		in[i] = m.in
	}
	j := newJoint(key, g.event, len(members))
	var out []*Out
	err = g.runner.store.InPipeline(ctx, key.organization, func(p *store.Pipeline) (err error) {
		j.Pipeline, j.subscribedOnly = p, g.runner.settings.SubscribedOnly
		g.lookForKeys(j, members)
		if out, err = g.perform(ctx, j, in); err == nil {
			err = g.keepAnswers(j, members, out)
		}
		failpoint.Hit(failpoint.BeforeGroupCommit)
		return err
	})
	outcomes := make([]groupOutcome[Out], len(members))
	switch {
	case err == nil, store.Unknown(err):
	case store.Unavailable(err):
		return nil, err
	default:
		// A deadlock, or something that one of them brought along. Nothing was changed, and
		// alone each has an outcome of its own.
		return outcomes, nil
	}
	failpoint.Hit(failpoint.AfterCommit) // as in Runner.perform, for an unknown outcome too
	var all []PendingDelivery
	for i, m := range members {
		if j.IsTaken(i) {
			outcomes[i].err = g.runner.taken(*m.key, j.taken[i])
			continue
		}
		if err == nil && !j.isMade(i) {
			continue
		}
		for d := range j.deliveries[i] {
			j.deliveries[i][d].Trace = m.trace
		}
		outcomes[i] = groupOutcome[Out]{out: out[i], deliveries: j.deliveries[i]}
		all = append(all, j.deliveries[i]...)
	}
	if len(all) > 0 {
		g.runner.dispatch.Deliver(all)
	}
	return outcomes, err
}

// lookForKeys has the keys of members looked for with what the change reads.
func (g *Group[In, Out]) lookForKeys(j *Joint, members []*member[In, Out]) {
	for i, m := range members {
		if m.key != nil {
			j.useKey(i, *m.key)
		}
	}
	j.lookForKeys()
}

// keepAnswers has the answers of members with keys written with their changes.
func (g *Group[In, Out]) keepAnswers(j *Joint, members []*member[In, Out], out []*Out) error {
	var kept []store.KeptAnswer
	for i, m := range members {
		if m.key == nil || out[i] == nil {
			continue
		}
		if j.IsTaken(i) {
			return errors.New("a change was made whose idempotency key is taken")
		}
		a, err := g.answerOf(m, out[i])
		if err != nil {
			return err
		}
		a.About = j.rows[i]
		kept = append(kept, a)
	}
	if len(kept) > 0 {
		j.KeepAnswers(j.Organization, kept)
	}
	return nil
}

// answerOf has a member answer. A panic in it is his alone: as an error it has each change of
// the group made by itself.
func (g *Group[In, Out]) answerOf(m *member[In, Out], out *Out) (kept store.KeptAnswer, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = errors.Errorf("panic in an answer: %v", what)
		}
	}()
	a, err := m.answer(out)
	if err != nil {
		return kept, err
	}
	return g.runner.keptAnswer(*m.key, a), nil
}

func touchDeliveries(ctx context.Context, deliveries []PendingDelivery) {
	ids := make([]fmt.Stringer, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.ID
	}
	Touch(ctx, "deliveryIds", ids...)
}
