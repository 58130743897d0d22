package activities

import (
	"context"
	"time"

	"earshot/internal/failpoint"
	"earshot/internal/privacy"
	"earshot/internal/publicid"
)

// ContinueSubjectName is the wire name of the activity.
const ContinueSubjectName = "continue_subject_request"

// subjectTime is the approximate duration of one activity. A walk through millions of events takes
// hundreds of steps in the run's history instead of thousands.
const subjectTime = 10 * time.Second

// Subjects continues exports and erasures of persons.
type Subjects struct{ privacy *privacy.Service }

// NewSubjects makes the activity.
func NewSubjects(s *privacy.Service) *Subjects { return &Subjects{s} }

// SubjectParams names the request.
type SubjectParams struct {
	Request publicid.SubjectRequest `json:"request"`
}

// SubjectProgress is the progress of a request, without personal data. The status is empty if the
// request no longer exists.
type SubjectProgress struct {
	Kind   string `json:"kind,omitempty"`
	Status string `json:"status,omitempty"`
	// Wait says that attempts under way have to end first.
	Wait bool `json:"wait,omitempty"`
}

// Running reports whether there is more to do.
func (p SubjectProgress) Running() bool { return p.Status == "running" }

// ContinueSubjectRequest works page by page for about subjectTime, and rests after each page as the
// retention does. A retry doesn't repeat committed pages.
func (s *Subjects) ContinueSubjectRequest(ctx context.Context, p SubjectParams) (SubjectProgress, error) {
	var progress SubjectProgress
	err := inPages(ctx, subjectTime, func() (more bool, err error) {
		now, err := s.privacy.Continue(ctx, p.Request)
		progress = SubjectProgress(now)
		if err == nil {
			failpoint.Hit(failpoint.AfterSubjectPage)
		}
		return progress.Running() && !progress.Wait, err
	})
	return progress, err
}
