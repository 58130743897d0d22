package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// PublishChangelog waits until a changelog entry is due and publishes it. The
// entry says when that is; the signal only says to look again. It ends when there
// is nothing to wait for: the entry is published, a draft again, or deleted.
func PublishChangelog(ctx workflow.Context, p activities.PublishParams) error {
	rescheduled := workflow.GetSignalChannel(ctx, RescheduledSignal)
	ctx = workflow.WithActivityOptions(ctx, transaction)
	for {
		// What was signaled until now is covered by the look that follows.
		for rescheduled.ReceiveAsync(nil) {
		}
		var answer activities.PublishResult
		if err := workflow.ExecuteActivity(ctx, PublishActivity, p).Get(ctx, &answer); err != nil {
			return err
		}
		switch {
		case answer.Due == nil && rescheduled.Len() == 0:
			workflow.SetCurrentDetails(ctx, "Nothing is left to wait for: the entry is published, a draft, or deleted.")
			return nil
		case answer.Due == nil:
			continue
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			// Moved some thousand times: a new run, which looks at once.
			return workflow.NewContinueAsNewError(ctx, PublishChangelogName, p)
		}
		workflow.SetCurrentDetails(ctx, "Waits until **"+answer.Due.UTC().Format(time.RFC3339)+"**. "+
			"To move it, PATCH the entry's publishedAt.")
		waiting, cancel := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(waiting, wait(answer.Due.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "until the publication"})
		workflow.NewSelector(ctx).
			AddFuture(timer, func(workflow.Future) {}).
			AddReceive(rescheduled, func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
		if cancel(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// wait is a second where the entry should be due by Temporal's clock and isn't by
// the worker's: a look at once would find the same, over and over.
func wait(until time.Duration) time.Duration {
	if until <= 0 {
		return time.Second
	}
	return until
}
