package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// SubjectRequest exports or erases a person. The row of the request knows how far it is, so a run may
// be started again at any time, and nothing of the person comes here.
func SubjectRequest(ctx workflow.Context, p activities.SubjectParams) (activities.SubjectProgress, error) {
	ctx = workflow.WithActivityOptions(ctx, subjectRound)
	for {
		var now activities.SubjectProgress
		if err := workflow.ExecuteActivity(ctx, ContinueSubjectActivity, p).Get(ctx, &now); err != nil || !now.Running() {
			return now, err
		}
		if now.Wait {
			pause := workflow.NewTimerWithOptions(ctx, subjectPause, workflow.TimerOptions{Summary: "until attempts under way have ended"})
			if err := pause.Get(ctx, nil); err != nil {
				return now, err
			}
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// The row says the rest.
			return now, workflow.NewContinueAsNewError(ctx, SubjectRequestName, p)
		}
	}
}
