package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/failpoint"
	"earshot/internal/publicid"
	"earshot/internal/subjects"
)

// subjectTime is about how long one activity goes on with a request, so that a walk through millions
// of events takes hundreds of steps in the run's history and not thousands.
const subjectTime = 10 * time.Second

// Subjects goes on with exports and erasures of persons.
type Subjects struct{ subjects *subjects.Service }

// NewSubjects makes the activity.
func NewSubjects(s *subjects.Service) *Subjects { return &Subjects{s} }

// SubjectParams name the request.
type SubjectParams struct {
	Request publicid.SubjectRequest `json:"request"`
}

// SubjectProgress tells how far a request is, and nothing of the person. The status is empty where
// the request is gone.
type SubjectProgress struct {
	Kind   string `json:"kind,omitempty"`
	Status string `json:"status,omitempty"`
	// Wait says that attempts that are under way have to end first.
	Wait bool `json:"wait,omitempty"`
}

// Running reports whether there is more to do.
func (p SubjectProgress) Running() bool { return p.Status == "running" }

// ContinueSubjectRequest goes on for a while, page by page, with a rest after each, as the retention
// does it. A page that was committed isn't done again by the next try.
func (s *Subjects) ContinueSubjectRequest(ctx context.Context, p SubjectParams) (SubjectProgress, error) {
	for began := time.Now(); ; {
		pageBegan := time.Now()
		now, err := s.subjects.Continue(ctx, p.Request)
		progress := SubjectProgress(now)
		if err == nil {
			failpoint.Hit(failpoint.AfterSubjectPage)
		}
		if err != nil || !progress.Running() || progress.Wait || time.Since(began) > subjectTime {
			return progress, err
		}
		activity.RecordHeartbeat(ctx)
		if err := rest(ctx, pageBegan); err != nil {
			return progress, err
		}
	}
}
