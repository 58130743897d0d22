package activities

import (
	"context"

	"go.temporal.io/sdk/workflow"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// putOff writes down when those deliveries are due again that found no slot or no memory:
// in their rows, so that the sweep doesn't take them for forgotten and the API says when,
// and in the result, for which their run sets a timer. Those of one webhook are due
// together, in one more round, and as late as its backlog demands, so that thousands of
// deliveries to a receiver that hangs don't come back every second.
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
	rows := make([]store.PutOff, 0, n)
	for webhook, which := range waiting {
		wait := d.limits.ReserveBacklog(webhook, len(which))
		for _, i := range which {
			wait = max(wait, outcomes[i].atLeast)
		}
		for _, i := range which {
			outcomes[i] = again(of[i], of[i].Attempt, wait)
			rows = append(rows, store.PutOff{ID: of[i].ID, Number: of[i].Attempt, Delay: wait})
		}
	}
	d.counts.delayed(ctx, n)
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return d.store.PutOffDeliveries(ctx, run.ID, run.RunID, rows)
}
