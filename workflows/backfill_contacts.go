package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// BackfillContactsName is the workflow of a search for contacts in old activity. Its id is the
// backfill's.
const BackfillContactsName = "backfill_contacts"

// BackfillContacts creates contacts for people with old activity, page by page. The backfill's row
// holds its progress, so a run can be restarted at any time. E-mail addresses never enter the
// workflow. A canceled run ends the backfill.
func BackfillContacts(ctx workflow.Context, p activities.BackfillParams) (activities.BackfillProgress, error) {
	now, err := backfill(workflow.WithActivityOptions(ctx, subjectRound), p)
	if ctx.Err() == nil {
		return now, err
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithActivityOptions(ctx, subjectRound)
	if err := workflow.ExecuteActivity(ctx, activities.CancelBackfillName, p).Get(ctx, &now); err != nil {
		return now, err
	}
	workflow.SetCurrentDetails(ctx, backfillDetails(now))
	return now, err
}

func backfill(ctx workflow.Context, p activities.BackfillParams) (now activities.BackfillProgress, err error) {
	for {
		if err := workflow.ExecuteActivity(ctx, activities.ContinueBackfillName, p).Get(ctx, &now); err != nil {
			return now, err
		}
		workflow.SetCurrentDetails(ctx, backfillDetails(now))
		if !now.Running() {
			return now, nil
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// The row holds the progress.
			return now, workflow.NewContinueAsNewError(ctx, BackfillContactsName, p)
		}
	}
}

// backfillDetails returns the progress in Markdown, for Temporal's web UI.
func backfillDetails(p activities.BackfillProgress) string {
	return fmt.Sprintf("Looked for **%d of %d** addresses.\n\n- %d with activity\n- %d contacts created\n- %d were there\n- %d left out, without room in the plan\n- %s",
		p.Addresses-p.Left, p.Addresses, p.Matched, p.Created, p.Existed, p.LeftOut, p.Status)
}
