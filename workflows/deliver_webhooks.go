package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// DeliverWebhooksName is the workflow of one delivery or a group.
const DeliverWebhooksName = "deliver_webhooks"

// DeliverParams names the deliveries of a run: a single one, or a group of up to 60 of one event
// type.
type DeliverParams struct {
	Deliveries []DeliveryRef `json:"deliveries"`
	// Version is the value of deliverVersion when the run was started, see versions.go.
	Version int `json:"version,omitempty"`
	// Continues holds the progress of the previous run, in the order of the deliveries. It is nil
	// in a run that doesn't continue another.
	Continues []DeliveryStatus `json:"continues,omitempty"`
	// Reset says that the previous run was created by a reset and hadn't revived the failed
	// deliveries yet.
	Reset bool `json:"reset,omitempty"`
}

// NewDeliverParams returns the parameters of a run that starts now.
func NewDeliverParams(of []DeliveryRef) DeliverParams {
	return DeliverParams{Deliveries: of, Version: deliverVersion}
}

// DeliveryRef names a delivery and the webhook that it goes to.
type DeliveryRef struct {
	ID      publicid.Delivery `json:"id"`
	Webhook publicid.Webhook  `json:"webhook"`
}

// DeliverWebhooks works on its deliveries until each one has succeeded, failed for good, or is
// gone. It attempts all of them together, and then each failed one after its own delay. The
// activities make the attempts and record the results in the rows. The run does the waiting in
// between.
//
// A run ends or continues in these ways:
//   - It fails if one of its deliveries failed for good, so that operators can find it.
//   - A canceled run gives up its pending deliveries.
//   - A run that was reset restarts its failed deliveries.
//   - A run with a long history continues as a new one.
func DeliverWebhooks(ctx workflow.Context, p DeliverParams) error {
	d := newDelivering(ctx, p)
	if err := d.listen(ctx); err != nil {
		return err
	}
	canceled := p.Version >= mindsCancellation && ctx.Err() != nil
	if canceled {
		// The run was canceled before it began, or during its first round. The round reads the
		// result from each row.
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

// delivering holds the state of a run.
type delivering struct {
	params DeliverParams
	// all holds the deliveries in the order of the params.
	all []*progress
	// began is the moment from which the run counts whole seconds.
	began time.Time
	// woken receives a value when an update ends the wait.
	woken workflow.Channel
	// shown is the current value of the status search attribute. It is empty in runs without one.
	shown string
	// closing stops new attempts, because the run is about to continue as new.
	closing bool
	// revivedBy is the last run that restarted failed deliveries, see revive.
	revivedBy string
}

// progress is the state of one delivery.
type progress struct {
	// Due holds the attempt that is next or under way. After the delivery has ended, it is the last
	// one.
	activities.Due
	status deliveryStatus
	// answer is the result of the last attempt.
	answer string
	// at is the time at which the next attempt is due. It has no meaning while flying is set, which
	// marks an attempt that is under way.
	at     time.Time
	flying bool
	// ending marks a delivery that an operator is giving up. No further attempt is made.
	ending bool
}

// waits reports whether the delivery waits for an attempt, now or later.
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
		d.shown = string(pending) // the start of the run has set it
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

// first runs the first round.
func (d *delivering) first(ctx workflow.Context) {
	round := flight{of: d.takeDue(workflow.Now(ctx))}
	d.show(ctx)
	var left activities.AttemptResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(uncanceled(ctx), firstRound), activities.AttemptFirstName,
		round.params()).Get(ctx, &left)
	if err != nil {
		// The fault is ours, for example the database's. The rows hold the progress of each
		// delivery, so attempting all of them again is safe.
		workflow.GetLogger(ctx).Warn("first round goes on in the later queue", "error", err)
		for _, due := range round.of {
			left.Pending = append(left.Pending, activities.Pending{Due: due.Due})
		}
	}
	d.land(ctx, round, left)
}

// runLater attempts the deliveries that are due, and meanwhile waits for the others. One slow
// receiver therefore doesn't delay the rest of its group.
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
			continue // a delivery is due or was given up
		}
		if err := d.landed(ctx, flights[ended]); err != nil {
			return err
		}
		flights = slices.Delete(flights, ended, ended+1)
	}
	return nil
}

// awaitNext waits until a flight has ended and returns its index. It returns -1 if a delivery is
// due, an update changed something, or the run is canceled. Selector and timer are created for each
// call, because a canceled timer stays ready in its selector and would be chosen again and again.
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
	f.done = workflow.ExecuteActivity(workflow.WithActivityOptions(uncanceled(ctx), o), activities.AttemptLaterName, f.params())
	return f
}

// uncanceled returns a context that a cancellation of the run doesn't reach. An attempt that has
// begun must end normally, because its request may already have reached the receiver.
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

// land applies the results of a round to its deliveries.
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

// due returns the end of a delay, rounded up to a whole second of the run's age. Deliveries of one
// run that failed together are therefore attempted together, while other runs have other moments. A
// delay of zero isn't rounded.
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
