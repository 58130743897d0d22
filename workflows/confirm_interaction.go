package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// ConfirmInteraction mails an end-user the link that confirms a vote, post or comment, and waits
// until it was used or its time is up. The row decides: who uses the link removes it in the
// transaction of what then counts, and the signal only says to look. What nobody confirmed goes
// without a trace.
func ConfirmInteraction(ctx workflow.Context, p activities.InteractionParams) error {
	confirmed := workflow.GetSignalChannel(ctx, ConfirmedSignal)
	// A mail server that is away until the link is over is no failure of the run: the row goes then.
	mailed := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, linkRound), MailLinkActivity, p).Get(ctx, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if mailed != nil {
		workflow.GetLogger(ctx).Warn("the link to an interaction wasn't mailed in time")
	}
	ctx = workflow.WithActivityOptions(ctx, transaction)
	for {
		// What was signaled until now is covered by the look that follows.
		for confirmed.ReceiveAsync(nil) {
		}
		var found activities.InteractionResult
		if err := workflow.ExecuteActivity(ctx, LookAtInteractionActivity, p).Get(ctx, &found); err != nil {
			return err
		}
		if found.Until == nil {
			workflow.SetCurrentDetails(ctx, "Nothing is left to wait for: it was confirmed, or its time is up.")
			return nil
		}
		workflow.SetCurrentDetails(ctx, "Waits until **"+found.Until.UTC().Format(time.RFC3339)+"** for the link to be used.")
		waiting, cancel := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(waiting, wait(found.Until.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "until the link is over"})
		workflow.NewSelector(ctx).
			AddFuture(timer, func(workflow.Future) {}).
			AddReceive(confirmed, func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
		if cancel(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
