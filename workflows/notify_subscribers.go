package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// NotifySubscribers tells the end-users of an organization by e-mail what became of what they wanted:
// it waits until the window of what happened first is over, has the e-mails sent, and goes on while
// there is more. The rows say what is due; the signal only says to look again. No address comes here.
func NotifySubscribers(ctx workflow.Context, p activities.SubscribersParams) error {
	updated := workflow.GetSignalChannel(ctx, UpdatedSignal)
	ctx = workflow.WithActivityOptions(ctx, subscribersRound)
	for {
		// What was signaled until now is covered by the look that follows.
		for updated.ReceiveAsync(nil) {
		}
		var now activities.SubscribersResult
		if err := workflow.ExecuteActivity(ctx, MailSubscribersActivity, p).Get(ctx, &now); err != nil {
			return err
		}
		switch {
		case now.Due == nil && !now.More && updated.Len() == 0:
			workflow.SetCurrentDetails(ctx, "Nothing is left to tell.")
			return nil
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			// The rows say the rest.
			return workflow.NewContinueAsNewError(ctx, NotifySubscribersName, p)
		case now.Due == nil || now.More:
			continue
		}
		workflow.SetCurrentDetails(ctx, "Waits until **"+now.Due.UTC().Format(time.RFC3339)+"**, for what else happens or for another try.")
		waiting, cancel := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(waiting, wait(now.Due.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "until the next e-mails"})
		workflow.NewSelector(ctx).
			AddFuture(timer, func(workflow.Future) {}).
			AddReceive(updated, func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
		if cancel(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
