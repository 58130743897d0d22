package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// FailureStreak follows a webhook while its deliveries fail in a row, and disables
// it when there are too many. The webhook's row counts, together with the outcome
// of each delivery; a signal only says to look again. The run ends with the streak:
// by a success, because the webhook was enabled anew, disabled or deleted, or when
// it has disabled the webhook itself.
func FailureStreak(ctx workflow.Context, p activities.StreakParams) error {
	moved := workflow.GetSignalChannel(ctx, StreakSignal)
	ctx = workflow.WithActivityOptions(ctx, transaction)
	f := &following{webhook: p.Webhook}
	for {
		// What was signaled until now is covered by the look that follows.
		for moved.ReceiveAsync(nil) {
		}
		if err := f.look(ctx); err != nil {
			return err
		}
		switch {
		case f.streak.Open && f.streak.Failures >= f.streak.Limit:
			disabled, err := f.disable(ctx)
			if err != nil {
				return err
			}
			if disabled && moved.Len() == 0 {
				return nil
			}
			if disabled {
				// Perhaps of a new streak. A run disables once, so that asking again
				// after a kill means this time.
				return workflow.NewContinueAsNewError(ctx, FailureStreakName, p)
			}
			continue // it isn't failing any more
		case !f.streak.Open && moved.Len() > 0:
			continue
		case !f.streak.Open:
			workflow.SetCurrentDetails(ctx, "The streak is over.")
			return nil
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return workflow.NewContinueAsNewError(ctx, FailureStreakName, p)
		}
		if err := f.wait(ctx, moved); err != nil {
			return err
		}
	}
}

// following is the state of a run.
type following struct {
	webhook publicid.Webhook
	streak  activities.Streak
	// shown says that the organization is a search attribute already.
	shown bool
}

func (f *following) look(ctx workflow.Context) error {
	if err := workflow.ExecuteActivity(ctx, LookAtStreakActivity, activities.StreakParams{Webhook: f.webhook}).Get(ctx, &f.streak); err != nil {
		return err
	}
	if !f.streak.Open {
		return nil
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%d of %d** failures in a row at %s. At %d it is disabled.",
		f.streak.Failures, f.streak.Limit, f.webhook, f.streak.Limit))
	if f.shown {
		return nil
	}
	f.shown = true
	return workflow.UpsertTypedSearchAttributes(ctx, OrganizationIDs.ValueSet([]string{f.streak.Organization.String()}))
}

// wait ends with the next signal. One that is lost, with the process that should
// have sent it, is made up for by a look a day.
func (f *following) wait(ctx workflow.Context, moved workflow.ReceiveChannel) error {
	waiting, cancel := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(waiting, 24*time.Hour, workflow.TimerOptions{Summary: "until a look without a cause"})
	workflow.NewSelector(ctx).
		AddFuture(timer, func(workflow.Future) {}).
		AddReceive(moved, func(workflow.ReceiveChannel, bool) {}).
		Select(ctx)
	cancel()
	return ctx.Err()
}

// disable disables the webhook, unless the streak is over meanwhile, and leaves it
// to a run of its own to tell the admins: a mail server that is away for days holds
// up no other streak.
//
// It isn't canceled halfway: nobody would be told of what the transaction did.
func (f *following) disable(ctx workflow.Context) (bool, error) {
	ctx = uncanceled(ctx)
	run := workflow.GetInfo(ctx).WorkflowExecution.RunID
	var done activities.Disabled
	err := workflow.ExecuteActivity(ctx, DisableWebhookActivity, activities.DisableParams{Webhook: f.webhook, Run: run}).Get(ctx, &done)
	if err != nil || !done.Disabled {
		return false, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Disabled %s after %d failures in a row. %d admins are told by mail_admins.",
		f.webhook, f.streak.Failures, len(done.Admins)))
	mails := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		// One for each time that the webhook is disabled, and the same in a run that
		// was made by a reset: a replay holds a child's id against the history.
		WorkflowID:            MailAdminsName + "/" + f.webhook.String() + "/" + workflow.GetInfo(ctx).OriginalRunID,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:         "tells the admins that a webhook is disabled",
		TypedSearchAttributes: workflow.GetTypedSearchAttributes(ctx),
	}), MailAdminsName, MailAdminsParams{Webhook: f.webhook, Admins: done.Admins})
	return true, mails.GetChildWorkflowExecution().Get(ctx, nil)
}
