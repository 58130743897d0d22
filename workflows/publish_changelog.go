package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// PublishChangelogName is the workflow of a changelog entry with a scheduled publication. Its
// id is the entry's.
const PublishChangelogName = "publish_changelog"

// RescheduledSignal says that an entry's publication was moved or unscheduled.
const RescheduledSignal = "rescheduled"

// PublishChangelog waits until a changelog entry is due and publishes it. The entry holds the time.
// The signal only makes the workflow read it again. The run ends when the entry is published, a
// draft again, or deleted.
func PublishChangelog(ctx workflow.Context, p activities.PublishParams) error {
	rescheduled := workflow.GetSignalChannel(ctx, RescheduledSignal)
	ctx = workflow.WithActivityOptions(ctx, transaction)
	for {
		// The activity below covers all signals that have arrived so far.
		for rescheduled.ReceiveAsync(nil) {
		}
		var answer activities.PublishResult
		if err := workflow.ExecuteActivity(ctx, activities.PublishName, p).Get(ctx, &answer); err != nil {
			return err
		}
		switch {
		case answer.Due == nil && rescheduled.Len() == 0:
			workflow.SetCurrentDetails(ctx, "Nothing is left to wait for: the entry is published, a draft, or deleted.")
			return nil
		case answer.Due == nil:
			continue
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			// The entry was moved some thousand times. The new run looks at it immediately.
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

// wait returns at least one second. The clocks of Temporal and the worker can differ, and an entry
// that is due by one isn't due by the other. Without a pause the workflow would loop.
func wait(until time.Duration) time.Duration {
	if until <= 0 {
		return time.Second
	}
	return until
}
