package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// FailureStreakName is the workflow of a webhook whose deliveries fail in a row.
// Its id is the webhook's.
const FailureStreakName = "failure_streak"

// StreakSignal says that a webhook's streak grew or ended.
const StreakSignal = "streak_moved"

// FailureStreak follows a webhook while its deliveries fail in a row, and disables it after too
// many failures. The count is in the webhook's row and changes in the transaction that records a
// delivery's outcome. A signal only makes the workflow read the row again.
//
// The run ends with the streak, which a success ends. The streak also ends when the webhook is
// disabled, enabled again or deleted.
func FailureStreak(ctx workflow.Context, p activities.StreakParams) error {
	moved := workflow.GetSignalChannel(ctx, StreakSignal)
	ctx = workflow.WithActivityOptions(ctx, transaction)
	f := &following{webhook: p.Webhook}
	for {
		// The read below covers all signals that have arrived so far.
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
				// The signal may belong to a new streak. Each run disables its webhook only once,
				// so that a repetition after a crash is recognized as such.
				return workflow.NewContinueAsNewError(ctx, FailureStreakName, p)
			}
			continue // the webhook no longer fails
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

// following holds the state of a run.
type following struct {
	webhook publicid.Webhook
	streak  activities.Streak
	// shown says that the organization is already a search attribute.
	shown bool
}

func (f *following) look(ctx workflow.Context) error {
	if err := workflow.ExecuteActivity(ctx, activities.LookAtStreakName, activities.StreakParams{Webhook: f.webhook}).Get(ctx, &f.streak); err != nil {
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

// wait returns after the next signal. A signal is lost if its sender crashes, so the workflow also
// looks at the row once a day.
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

// disable disables the webhook unless the streak has ended. A child workflow mails the admins. A
// mail server that is down for days therefore doesn't delay the webhook's next streak.
//
// A cancellation doesn't interrupt it, because the admins must learn of a committed change.
func (f *following) disable(ctx workflow.Context) (bool, error) {
	ctx = uncanceled(ctx)
	run := workflow.GetInfo(ctx).WorkflowExecution.RunID
	var done activities.Disabled
	err := workflow.ExecuteActivity(ctx, activities.DisableWebhookName, activities.DisableParams{Webhook: f.webhook, Run: run}).Get(ctx, &done)
	if err != nil || !done.Disabled {
		return false, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Disabled %s after %d failures in a row. %d admins are told by mail_admins.",
		f.webhook, f.streak.Failures, len(done.Admins)))
	mails := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		// The id is unique for each time that the webhook is disabled. A run that was created by a
		// reset uses the same id, because a replay compares the id with the history.
		WorkflowID:            MailAdminsName + "/" + f.webhook.String() + "/" + workflow.GetInfo(ctx).OriginalRunID,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:         "tells the admins that a webhook is disabled",
		TypedSearchAttributes: workflow.GetTypedSearchAttributes(ctx),
	}), MailAdminsName, MailAdminsParams{Webhook: f.webhook, Admins: done.Admins})
	return true, mails.GetChildWorkflowExecution().Get(ctx, nil)
}
