package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/internal/delivery"
	"earshot/internal/publicid"
)

// putOff writes the next attempt of postponed deliveries into their rows, so that the sweep ignores
// them and the API shows the time. It also puts the delays into the result, and the run sets a
// timer for them.
//
// A delivery without a token is due at its turn, which was recorded when the turn was assigned. The
// other deliveries of a webhook are due together, in one round. Their delay grows with the
// webhook's backlog, so that thousands of deliveries to a hanging receiver don't come back every
// second.
func (d *Deliveries) putOff(ctx context.Context, run workflow.Execution, of []Due, outcomes []outcome) error {
	waits := d.waits(of, outcomes)
	if len(waits) == 0 {
		return nil
	}
	rows := make([]delivery.PutOff, 0, len(waits))
	for i, wait := range waits {
		if !outcomes[i].noted {
			rows = append(rows, delivery.PutOff{ID: of[i].ID, Number: of[i].Attempt, Delay: wait})
		}
		outcomes[i] = again(of[i], of[i].Attempt, wait)
	}
	d.counts.delayed(ctx, len(waits))
	if len(rows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return delivery.PutOffAll(ctx, d.store, run.ID, run.RunID, rows)
}

// waits returns the delays of the postponed deliveries, by index.
func (d *Deliveries) waits(of []Due, outcomes []outcome) map[int]time.Duration {
	waits, behind, longest := map[int]time.Duration{}, map[publicid.Webhook][]int{}, map[publicid.Webhook]time.Duration{}
	for i, o := range outcomes {
		webhook := of[i].Webhook
		switch {
		case o.throttled:
			// Other attempts of the round may have taken longer.
			waits[i] = max(0, o.atLeast-time.Since(o.at))
			longest[webhook] = max(longest[webhook], waits[i])
		case o.putOff:
			behind[webhook] = append(behind[webhook], i)
		}
	}
	for webhook, wait := range longest {
		d.limits.Throttled(webhook, wait)
	}
	for webhook, which := range behind {
		wait := d.limits.ReserveBacklog(webhook, len(which))
		for _, i := range which {
			wait = max(wait, outcomes[i].atLeast)
		}
		for _, i := range which {
			waits[i] = wait
		}
	}
	return waits
}
