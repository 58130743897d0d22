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
}

// DeliveryRef names a delivery and the webhook that it goes to.
type DeliveryRef struct {
	ID      publicid.Delivery `json:"id"`
	Webhook publicid.Webhook  `json:"webhook"`
}

// Status is what the status query answers: the deliveries that haven't ended.
type Status struct {
	Pending []DeliveryStatus `json:"pending"`
}

// DeliveryStatus tells which attempt of a delivery is next, and when.
type DeliveryStatus struct {
	Delivery publicid.Delivery `json:"delivery"`
	Attempt  int               `json:"attempt"`
	// DueAt is nil while the attempt is under way.
	DueAt *time.Time `json:"dueAt,omitempty"`
}

// DeliverWebhooks sees deliveries through to their end: it attempts all at
// once, then each of those that failed after its own delay, until every one has
// succeeded, failed for good, or is gone. What an attempt does and what it
// leads to is the activities' business and recorded in the rows; the run owns
// the time in between.
func DeliverWebhooks(ctx workflow.Context, p DeliverParams) error {
	d := &delivering{}
	for _, ref := range p.Deliveries {
		d.under = append(d.under, activities.Due{ID: ref.ID, Webhook: ref.Webhook, Attempt: 1})
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, d.status); err != nil {
		return err
	}
	var left activities.AttemptResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, firstRound), AttemptFirstName,
		activities.AttemptParams{Deliveries: d.under}).Get(ctx, &left)
	if err != nil {
		// Our own fault, the database's for example. The rows know how far each
		// delivery came, so asking again for all of them is safe.
		workflow.GetLogger(ctx).Warn("first round goes on in the lane of later attempts", "error", err)
		for _, due := range d.under {
			left.Pending = append(left.Pending, activities.Pending{Due: due})
		}
	}
	d.schedule(workflow.Now(ctx), d.under, left)
	return d.runLater(ctx)
}

// delivering is the state of a run.
type delivering struct {
	// waiting deliveries are due at a time, under ones are being attempted.
	waiting []scheduled
	under   []activities.Due
}

type scheduled struct {
	activities.Due
	at time.Time
}

// flight is a round of attempts that is under way.
type flight struct {
	due  []activities.Due
	done workflow.Future
}

// runLater attempts what is due and waits for what isn't, both at once, so that
// one slow receiver doesn't hold up the others of its group.
func (d *delivering) runLater(ctx workflow.Context) error {
	var flights []flight
	for len(d.waiting)+len(flights) > 0 {
		if due := d.takeDue(workflow.Now(ctx)); len(due) > 0 {
			flights = append(flights, flight{due, attemptLater(ctx, due)})
		}
		ended := d.awaitNext(ctx, flights)
		if ended < 0 {
			continue // something is due
		}
		var left activities.AttemptResult
		if err := flights[ended].done.Get(ctx, &left); err != nil {
			return err
		}
		d.schedule(workflow.Now(ctx), flights[ended].due, left)
		flights = slices.Delete(flights, ended, ended+1)
	}
	return nil
}

// awaitNext waits until a flight has ended, whose index it returns, or until a
// delivery is due, which is -1. Selector and timer are made anew each time: a
// timer that was canceled stays ready in its selector and would be chosen again
// and again.
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
	selector.Select(ctx)
	return ended
}

func attemptLater(ctx workflow.Context, due []activities.Due) workflow.Future {
	o := laterRound
	o.TaskQueue = LaterQueue
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), AttemptLaterName,
		activities.AttemptParams{Deliveries: due})
}

// schedule moves the deliveries of a round that ended at now to those that wait,
// or out.
func (d *delivering) schedule(now time.Time, round []activities.Due, left activities.AttemptResult) {
	ended := make(map[publicid.Delivery]bool, len(round))
	for _, due := range round {
		ended[due.ID] = true
	}
	var still []activities.Due
	for _, due := range d.under {
		if !ended[due.ID] {
			still = append(still, due)
		}
	}
	d.under = still
	for _, p := range left.Pending {
		d.waiting = append(d.waiting, scheduled{Due: p.Due, at: wholeSecond(now, p.In)})
	}
}

// wholeSecond is the moment a delay ends, rounded up, so that deliveries that
// failed together are attempted together. What is due at once isn't delayed.
func wholeSecond(now time.Time, in time.Duration) time.Time {
	at := now.Add(in)
	if whole := at.Truncate(time.Second); in > 0 && whole.Before(at) {
		return whole.Add(time.Second)
	}
	return at
}

func (d *delivering) takeDue(now time.Time) []activities.Due {
	var due []activities.Due
	var later []scheduled
	for _, w := range d.waiting {
		if w.at.After(now) {
			later = append(later, w)
			continue
		}
		due = append(due, w.Due)
	}
	d.waiting, d.under = later, append(d.under, due...)
	return due
}

func (d *delivering) earliest() (time.Time, bool) {
	var first time.Time
	for i, w := range d.waiting {
		if i == 0 || w.at.Before(first) {
			first = w.at
		}
	}
	return first, len(d.waiting) > 0
}

func (d *delivering) status() (Status, error) {
	s := Status{Pending: []DeliveryStatus{}}
	for _, due := range d.under {
		s.Pending = append(s.Pending, DeliveryStatus{Delivery: due.ID, Attempt: due.Attempt})
	}
	for _, w := range d.waiting {
		s.Pending = append(s.Pending, DeliveryStatus{Delivery: w.ID, Attempt: w.Attempt, DueAt: &w.at})
	}
	return s, nil
}
