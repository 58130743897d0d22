package workflows

import (
	"fmt"
	"strings"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// This file holds the ends of a run of deliver_webhooks other than success: updates by operators,
// cancellation, reset, and failure.

// listen registers the query and the updates for operators.
func (d *delivering) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, StatusQuery, d.query); err != nil {
		return err
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, RetryNowUpdate, d.retryNow, workflow.UpdateHandlerOptions{
		Validator: func(_ workflow.Context, of string) error {
			return d.mustHave(of, (*progress).waits, "waits for its next attempt")
		},
		Description: "Makes the next attempt at once and waits for its outcome: of a delivery by its id, or of all that wait.",
	})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, GiveUpUpdate, d.giveUp, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, of string) error { return d.mustHave(of, (*progress).isPending, "is pending") },
		Description: "Ends a delivery by its id, or all that are pending, as failed. An attempt that is under way comes to its end before.",
	})
}

func (p *progress) isPending() bool { return p.status == pending && !p.ending }

// selected returns the deliveries that match an update: the one with the id, or all if the id is
// empty.
func (d *delivering) selected(of string, is func(*progress) bool) []*progress {
	var found []*progress
	for _, p := range d.all {
		if (of == "" || p.ID.String() == of) && is(p) {
			found = append(found, p)
		}
	}
	return found
}

// mustHave rejects an update that matches no delivery.
func (d *delivering) mustHave(of string, is func(*progress) bool, what string) error {
	switch {
	case len(d.selected(of, is)) > 0:
		return nil
	case of == "":
		return errors.Errorf("no delivery of this run %s", what)
	case len(d.selected(of, func(*progress) bool { return true })) == 0:
		return errors.Errorf("this run doesn't look after a delivery %s", shorten(of))
	default:
		return errors.Errorf("delivery %s isn't one that %s: see the query %s", of, what, StatusQuery)
	}
}

// shorten limits the length of an operator's input in a workflow's history.
func shorten(text string) string {
	if len(text) > 40 {
		return strings.ToValidUTF8(text[:40], "") + "…"
	}
	return text
}

// retryNow returns when the attempts have ended.
func (d *delivering) retryNow(ctx workflow.Context, of string) ([]DeliveryStatus, error) {
	chosen := d.selected(of, (*progress).waits)
	before := make([]int, len(chosen))
	for i, p := range chosen {
		before[i], p.at = p.Attempt, workflow.Now(ctx)
	}
	d.wake()
	err := workflow.Await(ctx, func() bool {
		for i, p := range chosen {
			if p.status == pending && p.Attempt == before[i] {
				return false
			}
		}
		return true
	})
	return statusOf(chosen), err
}

// giveUp returns when the rows are written.
func (d *delivering) giveUp(ctx workflow.Context, of string) ([]DeliveryStatus, error) {
	chosen := d.selected(of, (*progress).isPending)
	for _, p := range chosen {
		p.ending = true
	}
	err := workflow.Await(ctx, func() bool {
		for _, p := range chosen {
			if p.flying {
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if err := d.end(ctx, chosen); err != nil {
		return nil, err
	}
	d.wake()
	return statusOf(chosen), nil
}

// end fails the pending ones of the deliveries.
func (d *delivering) end(ctx workflow.Context, of []*progress) error {
	var left []*progress
	for _, o := range of {
		if o.status == pending {
			left = append(left, o)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := giveUpRows(ctx, left); err != nil {
		return err
	}
	for _, o := range left {
		if o.status == pending {
			o.status, o.answer = failed, activities.ErrorGivenUp
		}
	}
	d.show(ctx)
	return nil
}

// giveUpRows fails the pending ones of the rows.
func giveUpRows(ctx workflow.Context, of []*progress) error {
	var p activities.DeliveriesParams
	for _, o := range of {
		p.Deliveries = append(p.Deliveries, o.ID)
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(uncanceled(ctx), transaction), activities.GiveUpName, p).
		Get(uncanceled(ctx), nil)
}

// abandon ends a canceled run. It waits for the attempts under way, and then gives up the pending
// deliveries.
func (d *delivering) abandon(ctx workflow.Context, flights []flight) error {
	for _, f := range flights {
		if err := d.landed(ctx, f); err != nil {
			return err
		}
	}
	if err := d.end(ctx, d.all); err != nil {
		return err
	}
	return ctx.Err()
}

// revive restarts the failed deliveries in a run that a reset created. It comes at the end of the
// run, because a reset replays the code before it from the history. That replay must produce the
// same commands at every point of reset.
//
// The history may already contain a revival by an earlier reset, which records the id of its run. So
// revive repeats the activity until the recorded run is the current one.
func (d *delivering) revive(ctx workflow.Context) error {
	for run := workflow.GetInfo(ctx).WorkflowExecution.RunID; d.revivedBy != run; {
		var p activities.DeliveriesParams
		for _, o := range d.all {
			p.Deliveries = append(p.Deliveries, o.ID)
		}
		var again activities.Revived
		if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, transaction), activities.ReviveName, p).Get(ctx, &again); err != nil {
			return err
		}
		d.revivedBy = again.Run
		d.beginAgain(ctx, again.Pending)
		if err := d.runLater(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *delivering) beginAgain(ctx workflow.Context, of []activities.Due) {
	for _, due := range of {
		for _, o := range d.all {
			if o.ID == due.ID {
				o.Due, o.status, o.at, o.ending = due, pending, workflow.Now(ctx), false
			}
		}
	}
}

// failureType is the error type of a run with failed deliveries.
const failureType = "DeliveryFailed"

// failure returns the run's error if at least one delivery failed for good.
func (d *delivering) failure() error {
	var ids []publicid.Delivery
	for _, p := range d.all {
		if p.status == failed {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(
		fmt.Sprintf("%d of %d deliveries failed for good", len(ids), len(d.all)), failureType, nil, ids)
}
