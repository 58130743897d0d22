package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// ConfirmInteractionName is the workflow of an end-user's vote, post or comment that waits
// for a confirmation by e-mail. Its id is the interaction's.
const ConfirmInteractionName = "confirm_interaction"

// ConfirmedSignal says that an interaction was confirmed.
const ConfirmedSignal = "confirmed"

// ConfirmInteraction mails an end-user the link that confirms a vote, post or comment, and waits
// until the link is used or expires. The row decides: using the link removes the row in the
// transaction that makes the vote, post or comment count. The signal only makes the workflow look
// at the row again. An unconfirmed interaction is removed and leaves no trace.
func ConfirmInteraction(ctx workflow.Context, p activities.InteractionParams) error {
	confirmed := workflow.GetSignalChannel(ctx, ConfirmedSignal)
	// If the mail server is down until the link expires, the run doesn't fail. The row is then
	// removed.
	mailed := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, linkRound), activities.MailLinkName, p).Get(ctx, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if mailed != nil {
		workflow.GetLogger(ctx).Warn("the link to an interaction wasn't mailed in time")
	}
	ctx = workflow.WithActivityOptions(ctx, transaction)
	for {
		// The read below covers all signals that have arrived so far.
		for confirmed.ReceiveAsync(nil) {
		}
		var found activities.InteractionResult
		if err := workflow.ExecuteActivity(ctx, activities.LookAtInteractionName, p).Get(ctx, &found); err != nil {
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
