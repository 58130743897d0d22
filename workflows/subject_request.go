package workflows

import (
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// SubjectRequestName is the workflow of an export or an erasure of a person. Its id is
// the receipt's.
const SubjectRequestName = "subject_request"

// SubjectRequest exports or erases a person. The request's row holds its progress, so a run can be
// restarted at any time. Personal data never enters the workflow.
func SubjectRequest(ctx workflow.Context, p activities.SubjectParams) (activities.SubjectProgress, error) {
	ctx = workflow.WithActivityOptions(ctx, subjectRound)
	for {
		var now activities.SubjectProgress
		if err := workflow.ExecuteActivity(ctx, activities.ContinueSubjectName, p).Get(ctx, &now); err != nil || !now.Running() {
			return now, err
		}
		if now.Wait {
			pause := workflow.NewTimerWithOptions(ctx, subjectPause, workflow.TimerOptions{Summary: "until attempts under way have ended"})
			if err := pause.Get(ctx, nil); err != nil {
				return now, err
			}
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// The row holds the progress.
			return now, workflow.NewContinueAsNewError(ctx, SubjectRequestName, p)
		}
	}
}
