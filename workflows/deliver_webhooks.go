package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// DeliverParams are the deliveries that a run looks after: one, or a group of
// up to 60 of one event type.
type DeliverParams struct {
	Deliveries []DeliveryRef `json:"deliveries"`
	// Version is deliverVersion when the run was started, see versions.go.
	Version int `json:"version,omitempty"`
	// Continues is how far the run before came, in the order of the deliveries; nil in a
	// run that doesn't continue another.
	Continues []DeliveryStatus `json:"continues,omitempty"`
	// Reset: the run before was made by a reset, and hadn't begun again yet with what had
	// failed.
	Reset bool `json:"reset,omitempty"`
}

// NewDeliverParams are those of a run that starts now.
func NewDeliverParams(of []DeliveryRef) DeliverParams {
	return DeliverParams{Deliveries: of, Version: deliverVersion}
}

// DeliveryRef names a delivery and the webhook that it goes to.
type DeliveryRef struct {
	ID      publicid.Delivery `json:"id"`
	Webhook publicid.Webhook  `json:"webhook"`
}

// DeliverWebhooks sees deliveries through to their end: it attempts all at
// once, then each of those that failed after its own delay, until every one has
// succeeded, failed for good, or is gone. What an attempt does and what it
// leads to is the activities' business and recorded in the rows; the run owns
// the time in between.
//
// The run fails when one of its deliveries failed for good, so that operators find
// it. A run that is canceled gives up what is pending. One that was reset begins
// again with what had failed. One whose history becomes long continues as a new one.
func DeliverWebhooks(ctx workflow.Context, p DeliverParams) error {
	d := newDelivering(ctx, p)
	if err := d.listen(ctx); err != nil {
		return err
	}
	canceled := p.Version >= mindsCancellation && ctx.Err() != nil
	if canceled {
		// Before it began, or while the first round was under way for the first time:
		// the round finds what became of each row.
		if err := giveUpRows(ctx, d.all); err != nil {
			return err
		}
	}
	if p.Continues == nil {
		d.first(ctx)
	} else {
		d.show(ctx)
	}
	if err := d.runLater(ctx); err != nil {
		return err
	}
	if err := d.revive(ctx); err != nil {
		return err
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	if canceled && d.count(failed) > 0 {
		return ctx.Err()
	}
	return d.failure()
}

// delivering is the state of a run.
type delivering struct {
	params DeliverParams
	// all deliveries, in the order of the params.
	all []*progress
	// began is the moment that the run's seconds count from.
	began time.Time
	// woken ends a wait because of an update.
	woken workflow.Channel
	// shown is the status among the search attributes; empty where there is none.
	shown string
	// closing: no attempt begins any more, because the run is going to continue as new.
	closing bool
	// revivedBy is the last run that began again with what had failed, see revive.
	revivedBy string
}

// progress is how far a delivery is.
type progress struct {
	// Due has the attempt that is next or under way, and in the end the last one.
	activities.Due
	status deliveryStatus
	// answer to the last attempt.
	answer string
	// at is when the attempt is due, unless it is flying: under way.
	at     time.Time
	flying bool
	// ending says that an operator gives it up; nothing is to be attempted then.
	ending bool
}

// waits says that there is an attempt to be made, now or later.
func (p *progress) waits() bool { return p.status == pending && !p.flying && !p.ending }

func newDelivering(ctx workflow.Context, p DeliverParams) *delivering {
	d := &delivering{
		params: p, began: workflow.Now(ctx), woken: workflow.NewNamedBufferedChannel(ctx, "woken", 1),
		revivedBy: workflow.GetInfo(ctx).OriginalRunID,
	}
	if p.Version < countsFromItsBeginning {
		d.began = d.began.Truncate(time.Second)
	}
	if p.Version >= showsStatus {
		d.shown = string(pending) // the start says so
	}
	for _, ref := range p.Deliveries {
		due := activities.Due{ID: ref.ID, Webhook: ref.Webhook, Attempt: 1}
		d.all = append(d.all, &progress{Due: due, status: pending, at: workflow.Now(ctx)})
	}
	d.goOn()
	return d
}

// flight is a round of attempts that is under way.
type flight struct {
	of   []*progress
	done workflow.Future
}

func (f *flight) params() activities.AttemptParams {
	var p activities.AttemptParams
	for _, of := range f.of {
		p.Deliveries = append(p.Deliveries, of.Due)
	}
	return p
}

// first makes the first round.
func (d *delivering) first(ctx workflow.Context) {
	round := flight{of: d.takeDue(workflow.Now(ctx))}
	d.show(ctx)
	var left activities.AttemptResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(uncanceled(ctx), firstRound), AttemptFirstName,
		round.params()).Get(ctx, &left)
	if err != nil {
		// Our own fault, the database's for example. The rows know how far each
		// delivery came, so asking again for all of them is safe.
		workflow.GetLogger(ctx).Warn("first round goes on in the later queue", "error", err)
		for _, due := range round.of {
			left.Pending = append(left.Pending, activities.Pending{Due: due.Due})
		}
	}
	d.land(ctx, round, left)
}

// runLater attempts what is due and waits for what isn't, both at once, so that
// one slow receiver doesn't hold up the others of its group.
func (d *delivering) runLater(ctx workflow.Context) error {
	var flights []flight
	for d.count(pending) > 0 {
		d.closing = isLong(ctx)
		if d.closing && len(flights) == 0 {
			return d.continueAsNew(ctx)
		}
		if due := d.takeDue(workflow.Now(ctx)); len(due) > 0 {
			d.show(ctx)
			flights = append(flights, attemptLater(ctx, due))
		}
		ended := d.awaitNext(ctx, flights)
		if ctx.Err() != nil {
			return d.abandon(ctx, flights)
		}
		if ended < 0 {
			continue // something is due, or was given up
		}
		if err := d.landed(ctx, flights[ended]); err != nil {
			return err
		}
		flights = slices.Delete(flights, ended, ended+1)
	}
	return nil
}

// awaitNext waits until a flight has ended, whose index it returns, or for
// something else, which is -1: a delivery is due, an update has changed something,
// or the run is canceled. Selector and timer are made anew each time: a timer that
// was canceled stays ready in its selector and would be chosen again and again.
func (d *delivering) awaitNext(ctx workflow.Context, flights []flight) int {
	ended := -1
	selector := workflow.NewSelector(ctx)
	for i, f := range flights {
		selector.AddFuture(f.done, func(workflow.Future) { ended = i })
	}
	timerCtx, stop := workflow.WithCancel(ctx)
	defer stop()
	if next, ok := d.earliest(); ok {
		timer := workflow.NewTimerWithOptions(timerCtx, next.Sub(workflow.Now(ctx)), workflow.TimerOptions{
			Summary: "until the next attempt",
		})
		selector.AddFuture(timer, func(workflow.Future) {})
	}
	selector.AddReceive(d.woken, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.Select(ctx)
	return ended
}

func (d *delivering) wake() { d.woken.SendAsync(nil) }

func attemptLater(ctx workflow.Context, due []*progress) flight {
	f := flight{of: due}
	o := laterRound
	o.TaskQueue = LaterQueue
	f.done = workflow.ExecuteActivity(workflow.WithActivityOptions(uncanceled(ctx), o), AttemptLaterName, f.params())
	return f
}

// uncanceled lets what has begun come to its end: an attempt that is cut off may
// have reached its receiver.
func uncanceled(ctx workflow.Context) workflow.Context {
	free, _ := workflow.NewDisconnectedContext(ctx)
	return free
}

func (d *delivering) landed(ctx workflow.Context, f flight) error {
	var left activities.AttemptResult
	if err := f.done.Get(uncanceled(ctx), &left); err != nil {
		return err
	}
	d.land(ctx, f, left)
	return nil
}

// land takes in what became of a round.
func (d *delivering) land(ctx workflow.Context, f flight, left activities.AttemptResult) {
	now := workflow.Now(ctx)
	for i, p := range f.of {
		p.flying = false
		if i < len(left.Answers) && left.Answers[i] != "" {
			p.answer = left.Answers[i]
		}
		again := slices.IndexFunc(left.Pending, func(a activities.Pending) bool { return a.ID == p.ID })
		switch {
		case again >= 0:
			p.Attempt, p.at = left.Pending[again].Attempt, d.due(now, left.Pending[again].In)
		case slices.Contains(left.Failed, p.ID):
			p.status = failed
		case i < len(left.Answers) && left.Answers[i] == "":
			p.status = gone
		default:
			p.status = succeeded
		}
	}
	d.show(ctx)
}

// due is the moment a delay ends, rounded up to a whole second of the run's age: its
// deliveries that failed together are attempted together, and those of other runs at
// other moments. What is due at once isn't delayed.
func (d *delivering) due(now time.Time, in time.Duration) time.Time {
	age := now.Add(in).Sub(d.began)
	if whole := age.Truncate(time.Second); in > 0 && whole < age {
		age = whole + time.Second
	}
	return d.began.Add(age)
}

func (d *delivering) takeDue(now time.Time) []*progress {
	var due []*progress
	for _, p := range d.all {
		if p.waits() && !d.closing && !p.at.After(now) {
			p.flying = true
			due = append(due, p)
		}
	}
	return due
}

func (d *delivering) earliest() (time.Time, bool) {
	var first time.Time
	found := false
	for _, p := range d.all {
		if p.waits() && !d.closing && (!found || p.at.Before(first)) {
			first, found = p.at, true
		}
	}
	return first, found
}

func (d *delivering) count(s deliveryStatus) int {
	n := 0
	for _, p := range d.all {
		if p.status == s {
			n++
		}
	}
	return n
}
