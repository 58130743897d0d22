package workflows

import "go.temporal.io/sdk/workflow"

// This file continues a run of deliver_webhooks as a new one when its history becomes long.
// Temporal ends a run at 51,200 events or 50 MB, and suggests a new run at a twelfth of that. Only
// deliveries that are postponed very often get that far.

// isLong reports whether the run should continue as new. It waits until every update handler has
// finished, so that no update is lost.
func isLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && ctx.Err() == nil &&
		workflow.AllHandlersFinished(ctx) && continuesAsNew(ctx)
}

// continueAsNew ends the run when no attempt is under way, and passes its state to the next run.
// The new run has the same search attributes and fairness key.
func (d *delivering) continueAsNew(ctx workflow.Context) error {
	p := d.params
	p.Continues = statusOf(d.all)
	p.Reset = d.revivedBy != workflow.GetInfo(ctx).WorkflowExecution.RunID
	return workflow.NewContinueAsNewError(ctx, DeliverWebhooksName, p)
}

// goOn takes over the state of the previous run, if there is one.
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
