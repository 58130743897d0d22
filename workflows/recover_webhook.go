package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// RecoverWebhookName is the workflow of a recovery. Its id is the recovery's.
const RecoverWebhookName = "recover_webhook"

// RecoverWebhook replays the failed deliveries of a webhook within a window, page by page with a
// pause in between. The recovery's row holds its progress, so a run can be restarted at any time. A
// canceled run stops the recovery.
func RecoverWebhook(ctx workflow.Context, p activities.RecoverParams) (activities.RecoverProgress, error) {
	r := &recovering{}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, r.status); err != nil {
		return r.progress, err
	}
	err := r.run(workflow.WithActivityOptions(ctx, recoverRound), p)
	if ctx.Err() == nil {
		return r.progress, err
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithActivityOptions(ctx, recoverRound)
	if err := workflow.ExecuteActivity(ctx, activities.CancelRecoveryName, p).Get(ctx, &r.progress); err != nil {
		return r.progress, err
	}
	workflow.SetCurrentDetails(ctx, details(r.progress))
	return r.progress, err
}

// recovering holds the state of a run.
type recovering struct{ progress activities.RecoverProgress }

func (r *recovering) status() (activities.RecoverProgress, error) { return r.progress, nil }

func (r *recovering) run(ctx workflow.Context, p activities.RecoverParams) error {
	if err := r.step(ctx, activities.CountFailedName, p); err != nil {
		return err
	}
	for r.progress.Running() {
		if err := r.step(ctx, activities.ReplayFailedName, p); err != nil || !r.progress.Running() {
			return err
		}
		pause := workflow.NewTimerWithOptions(ctx, recoverPause, workflow.TimerOptions{Summary: "until the next page"})
		if err := pause.Get(ctx, nil); err != nil {
			return err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// The row holds the progress.
			return workflow.NewContinueAsNewError(ctx, RecoverWebhookName, p)
		}
	}
	return nil
}

func (r *recovering) step(ctx workflow.Context, activity string, p activities.RecoverParams) error {
	var now activities.RecoverProgress
	if err := workflow.ExecuteActivity(ctx, activity, p).Get(ctx, &now); err != nil {
		return err
	}
	r.progress = now
	workflow.SetCurrentDetails(ctx, details(now))
	return nil
}

// details returns the progress in Markdown, for Temporal's web UI.
func details(p activities.RecoverProgress) string {
	if p.Status == "" {
		return "The webhook was deleted, and the recovery with it."
	}
	text := fmt.Sprintf("Replayed **%d of %d** failed deliveries.\n\n- since %s\n- until %s\n- %s",
		p.Replayed, p.Total, p.Since.Format(time.RFC3339), p.Until.Format(time.RFC3339), p.Status)
	if p.StoppedReason != "" {
		text += ": " + p.StoppedReason
	}
	return text
}
