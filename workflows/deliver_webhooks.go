package workflows

import (
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

// runLater attempts what is due and waits for what isn't, both at once, so that
// one slow receiver doesn't hold up the others of its group.
func (d *delivering) runLater(ctx workflow.Context) error {
	var failed error
	selector := workflow.NewSelector(ctx)
	for len(d.waiting)+len(d.under) > 0 && failed == nil {
		if due := d.takeDue(workflow.Now(ctx)); len(due) > 0 {
			selector.AddFuture(attemptLater(ctx, due), func(f workflow.Future) {
				var left activities.AttemptResult
				if failed = f.Get(ctx, &left); failed == nil {
					d.schedule(workflow.Now(ctx), due, left)
				}
			})
		}
		timerCtx, stop := workflow.WithCancel(ctx)
		if next, ok := d.earliest(); ok {
			timer := workflow.NewTimerWithOptions(timerCtx, next.Sub(workflow.Now(ctx)), workflow.TimerOptions{
				Summary: "until the next attempt",
			})
			selector.AddFuture(timer, func(workflow.Future) {})
		}
		selector.Select(ctx)
		stop()
	}
	return failed
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
