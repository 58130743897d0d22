package main

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
)

// trial is a kill at one failpoint.
type trial struct {
	at failpoint.Point
	// feed leads a process to the point if the load doesn't.
	feed func(ctx context.Context) error
}

// killAtPoints kills the API and a worker once at each failpoint, under load. The load reaches the
// points of every delivery, and end-users reach theirs. A feed leads to each of the others.
func (r *run) killAtPoints(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	return r.underLoad(ctx, func(ctx context.Context) error {
		if err := r.chain(ctx, r.stack.apis[0], apiTrials()); err != nil {
			return err
		}
		if r.options.short {
			return r.chain(ctx, r.stack.workers[0], commonTrials())
		}
		// A rare event has to reach the armed worker, so the other worker stays down.
		one, other := r.stack.workers[0], r.stack.workers[1]
		before := other.generation()
		other.hold(true)
		at := other.kill()
		if err := r.chain(ctx, one, append(commonTrials(), r.rareTrials()...)); err != nil {
			return err
		}
		other.hold(false)
		if err := other.awaitReady(ctx, before); err != nil {
			return err
		}
		r.kills.add(other.name, at, other.started(before+1))
		return one.awaitReady(ctx, before)
	})
}

func apiTrials() []trial {
	return []trial{
		{at: failpoint.BeforeGroupCommit}, {at: failpoint.AfterCommit}, {at: failpoint.BeforeStart}, {at: failpoint.AfterStart},
		{at: failpoint.AfterAsk}, {at: failpoint.BeforeConfirmation}, {at: failpoint.AfterConfirmation},
	}
}

// commonTrials are at the points that every delivery passes.
func commonTrials() []trial {
	return []trial{
		{at: failpoint.AfterClaim}, {at: failpoint.BeforeSend}, {at: failpoint.AfterSend}, {at: failpoint.AfterRecord},
	}
}

// rareTrials are ordered so that each one leaves the state that the next one needs.
func (r *run) rareTrials() []trial {
	return []trial{
		{at: failpoint.SweepFound, feed: r.forget},
		{at: failpoint.BeforeStreakSignal, feed: r.failMore},
		{at: failpoint.AfterStreakSignal, feed: r.failMore},
		{at: failpoint.AfterDisable, feed: r.failUntilDisabled},
		{at: failpoint.RecoveryPage, feed: r.recover},
		{at: failpoint.AfterPublication, feed: r.publishSoon},
		{at: failpoint.RetentionBatch, feed: r.expire},
		// Visitors and erased persons reach these without a feed.
		{at: failpoint.BeforeLink}, {at: failpoint.AfterLink},
		// This uses the same recovery: Temporal repeats its page after two minutes.
		{at: failpoint.AfterRecoveryPage},
		{at: failpoint.SubjectPage}, {at: failpoint.AfterSubjectPage}, {at: failpoint.BeforeLastAnswers},
	}
}

// chain kills a process and arms its successors with one point each.
func (r *run) chain(ctx context.Context, p *service, trials []trial) error {
	points := make([]failpoint.Point, len(trials))
	for i, t := range trials {
		points[i] = t.at
	}
	before := p.generation()
	what, at := p.name, p.kill(points...)
	for i, t := range trials {
		armed := before + 1 + i
		if err := p.awaitStart(ctx, armed); err != nil {
			return err
		}
		r.kills.add(what, at, p.started(armed))
		if t.feed != nil {
			if err := t.feed(ctx); err != nil {
				return errors.Wrapf(err, "lead up to %s", t.at)
			}
		}
		if err := p.awaitDeath(ctx, armed, t.at); err != nil {
			return err
		}
		what, at = p.name+" at "+string(t.at), p.ends(armed)
		r.report("killed %s", what)
	}
	last := before + 1 + len(trials)
	if err := p.awaitReady(ctx, last-1); err != nil {
		return err
	}
	r.kills.add(what, at, p.started(last))
	return nil
}

// forget kills the API between a commit and the start, so that a sweep finds a delivery.
func (r *run) forget(ctx context.Context) error {
	return r.chain(ctx, r.stack.apis[0], []trial{{at: failpoint.AfterCommit}})
}

// failMore makes deliveries that fail permanently some seconds later.
func (r *run) failMore(ctx context.Context) error { return r.load.more(ctx, r.broken, 5) }

// failUntilDisabled makes more failed deliveries than a webhook may have in a row. They also fill
// two pages of a recovery, which has 50 deliveries a page.
func (r *run) failUntilDisabled(ctx context.Context) error { return r.load.more(ctx, r.broken, 70) }

// publishSoon schedules a changelog entry for the next second.
func (r *run) publishSoon(ctx context.Context) error {
	entry, err := r.plain.schedule(ctx, time.Now().Add(time.Second))
	if err == nil {
		r.load.acknowledge(entry)
	}
	return err
}
