package workflows

import "go.temporal.io/sdk/workflow"

// This file is how a run of deliver_webhooks whose history becomes long continues as a
// new one: Temporal ends a run by itself at 51,200 events or 50 MB, and suggests a new
// one at a twelfth of that. Only deliveries that are put off very often come there.

// isLong says that the run is to continue as new: no update is at work that waits for
// an attempt, and none would be lost.
func isLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && ctx.Err() == nil &&
		workflow.AllHandlersFinished(ctx) && continuesAsNew(ctx)
}

// continueAsNew ends the run, when no attempt is under way, with the beginning of the
// next, which keeps the search attributes and the fairness key.
func (d *delivering) continueAsNew(ctx workflow.Context) error {
	p := d.params
	p.Continues = statusOf(d.all)
	p.Reset = d.revivedBy != workflow.GetInfo(ctx).WorkflowExecution.RunID
	return workflow.NewContinueAsNewError(ctx, DeliverWebhooksName, p)
}

// goOn takes over from the run before, if there is one.
func (d *delivering) goOn() {
	for i, s := range d.params.Continues {
		p := d.all[i]
		p.status, p.Attempt, p.answer = deliveryStatus(s.Status), s.Attempt, s.Answer
		if s.DueAt != nil {
			p.at = *s.DueAt
		}
	}
	if d.params.Reset {
		d.revivedBy = ""
	}
}
