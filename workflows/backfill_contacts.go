package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// BackfillContacts makes contacts of people with old activity, page by page. The row of the backfill
// knows how far it is, so a run may be started again at any time, and no address comes here. One that is
// canceled ends the backfill.
func BackfillContacts(ctx workflow.Context, p activities.BackfillParams) (activities.BackfillProgress, error) {
	now, err := backfill(workflow.WithActivityOptions(ctx, subjectRound), p)
	if ctx.Err() == nil {
		return now, err
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithActivityOptions(ctx, subjectRound)
	if err := workflow.ExecuteActivity(ctx, CancelBackfillActivity, p).Get(ctx, &now); err != nil {
		return now, err
	}
	workflow.SetCurrentDetails(ctx, backfillDetails(now))
	return now, err
}

func backfill(ctx workflow.Context, p activities.BackfillParams) (now activities.BackfillProgress, err error) {
	for {
		if err := workflow.ExecuteActivity(ctx, ContinueBackfillActivity, p).Get(ctx, &now); err != nil {
			return now, err
		}
		workflow.SetCurrentDetails(ctx, backfillDetails(now))
		if !now.Running() {
			return now, nil
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// The row says the rest.
			return now, workflow.NewContinueAsNewError(ctx, BackfillContactsName, p)
		}
	}
}

// backfillDetails is what the web UI shows, in Markdown.
func backfillDetails(p activities.BackfillProgress) string {
	return fmt.Sprintf("Looked for **%d of %d** addresses.\n\n- %d with activity\n- %d contacts created\n- %d were there\n- %d left out, without room in the plan\n- %s",
		p.Addresses-p.Left, p.Addresses, p.Matched, p.Created, p.Existed, p.LeftOut, p.Status)
}
