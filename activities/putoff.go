package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// putOff has the deliveries wait that found no place: in their rows, so that nobody
// takes them for forgotten and the API says when, and in their run, with a timer that
// holds no slot. Those of one webhook wait together, which is one timer and one round,
// and so long that thousands of deliveries to a receiver that hangs don't spin.
func (d *Deliveries) putOff(ctx context.Context, run workflow.Execution, of []Due, outcomes []outcome) error {
	waiting := map[publicid.Webhook][]int{}
	n := 0
	for i, o := range outcomes {
		if o.putOff {
			waiting[of[i].Webhook] = append(waiting[of[i].Webhook], i)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	// A first round may be put off because of a burst that is over in a moment. What is
	// put off in the lane of later attempts keeps to its budget.
	step := retryStep
	if activity.GetInfo(ctx).IsLocalActivity {
		step = 0
	}
	rows := make([]store.PutOff, 0, n)
	for webhook, which := range waiting {
		wait := d.slots.turn(webhook, len(which), step)
		for _, i := range which {
			wait = max(wait, outcomes[i].atLeast)
		}
		for _, i := range which {
			outcomes[i] = again(of[i], of[i].Attempt, wait)
			rows = append(rows, store.PutOff{ID: of[i].ID, Number: of[i].Attempt, Delay: wait})
		}
	}
	countPutOff(ctx, n)
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return d.store.PutOffDeliveries(ctx, run.ID, run.RunID, rows)
}
