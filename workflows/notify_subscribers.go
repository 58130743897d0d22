package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// NotifySubscribersName is the workflow of the e-mails to the end-users of an organization.
// Its id is the organization's.
const NotifySubscribersName = "notify_subscribers"

// UpdatedSignal says that there are new updates for end-users.
const UpdatedSignal = "updated"

// NotifySubscribers sends an organization's end-users e-mails about changes to their requests. It
// waits until the window that began with the first change is over, sends the e-mails, and repeats
// while there are more. The rows hold the due times. The signal only makes the workflow look again.
// E-mail addresses never enter the workflow.
func NotifySubscribers(ctx workflow.Context, p activities.SubscribersParams) error {
	updated := workflow.GetSignalChannel(ctx, UpdatedSignal)
	ctx = workflow.WithActivityOptions(ctx, subscribersRound)
	for {
		// The activity below covers all signals that have arrived so far.
		for updated.ReceiveAsync(nil) {
		}
		var now activities.SubscribersResult
		if err := workflow.ExecuteActivity(ctx, activities.MailSubscribersName, p).Get(ctx, &now); err != nil {
			return err
		}
		switch {
		case now.Due == nil && !now.More && updated.Len() == 0:
			workflow.SetCurrentDetails(ctx, "Nothing is left to tell.")
			return nil
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			// The rows hold the progress.
			return workflow.NewContinueAsNewError(ctx, NotifySubscribersName, p)
		case now.Due == nil || now.More:
			continue
		}
		workflow.SetCurrentDetails(ctx, "Waits until **"+now.Due.UTC().Format(time.RFC3339)+"**, for further changes or for another try.")
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
