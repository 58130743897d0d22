package privacy

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/subjectrequest"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

const (
	// rowsPage is the number of posts, votes, comments or events in a transaction. A post or payload
	// has at most 300 KB, so a page has at most 15 MB.
	rowsPage = 50
	// eventsPage is the number of events that a transaction scans by their first bytes, which takes
	// some milliseconds.
	eventsPage = 2000
	// answersPage is the number of receivers' answers that a transaction clears. Each has at most
	// 1 KiB.
	answersPage = 1000
)

// Progress is the progress of a request. Status is the status of the row, or empty if the row is gone.
type Progress struct {
	Kind, Status string
	// Wait is true while the request has to wait for running attempts to end.
	Wait bool
}

// step is one page of a running request, whose row is locked.
type step struct {
	*change.Change
	*Service
	request *db.SubjectRequest
	update  *db.SubjectRequestUpdateOne
	records int
	wait    bool
}

// exportSteps and eraseSteps map each stage to its function.
var (
	exportSteps = map[string]func(*step, context.Context) error{
		stageContact: (*step).exportContact, stagePosts: (*step).exportPosts, stageVotes: (*step).exportVotes,
		stageComments: (*step).exportComments, stageSubmissions: (*step).exportSubmissions, stageEvents: (*step).exportEvents,
	}
	eraseSteps = map[string]func(*step, context.Context) error{
		stagePosts: (*step).blankPosts, stageComments: (*step).blankComments, stageEvents: (*step).eraseEvents,
		stageAnswers: (*step).clearAnswers, stageLastAnswers: (*step).clearAnswers,
	}
)

// Continue processes one page of a request. The same transaction updates the position in the row, so a
// retry after a kill repeats no work. It acts on behalf of the service and in every billing state,
// because the request was already accepted.
func (s *Service) Continue(ctx context.Context, id publicid.SubjectRequest) (p Progress, err error) {
	ctx, err = postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	found, err := s.store.Client().SubjectRequest.Query().Where(subjectrequest.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, errors.Wrap(err, "load the data-subject request")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		r, err := c.SubjectRequest.Query().Where(subjectrequest.ID(id)).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
		if err != nil {
			return errors.Wrap(err, "lock the data-subject request")
		}
		t := &step{Change: c, Service: s, request: r, update: c.SubjectRequest.UpdateOne(r)}
		if r.Status == subjectrequest.StatusRunning {
			if r, err = t.run(ctx); err != nil {
				return errors.Wrap(err, "go on with the data-subject request")
			}
		}
		p = Progress{Kind: string(r.Kind), Status: string(r.Status), Wait: t.wait}
		return nil
	})
	return p, err
}

func (t *step) run(ctx context.Context) (*db.SubjectRequest, error) {
	steps := eraseSteps
	if t.request.Kind == subjectrequest.KindExport {
		steps = exportSteps
	}
	do := steps[t.request.Stage]
	if do == nil {
		return nil, errors.Errorf("a request of the kind %s has no stage %s", t.request.Kind, t.request.Stage)
	}
	if err := do(t, ctx); err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.SubjectPage)
	if t.records > 0 {
		t.update.AddRecords(t.records)
	}
	if change.Unchanged(t.update.Mutation()) {
		return t.request, nil
	}
	return t.update.Save(ctx)
}

// next moves the request to another stage.
func (t *step) next(stage string) { t.update.SetStage(stage).ClearPosition() }

// nextAfter continues after the last row of a page, or with the given stage after the last page.
func (t *step) nextAfter(rows int, last func() uuid.UUID, stage string) {
	if rows < rowsPage {
		t.next(stage)
	} else {
		t.update.SetPosition(last())
	}
}

// position is the progress within the stage. Zero is its beginning.
func (t *step) position() uuid.UUID {
	if t.request.Position == nil {
		return uuid.Nil
	}
	return *t.request.Position
}

// walk finds the organization's next events that name the person or an item that the request has
// noted. It returns their ids and the last scanned event. The result over is true at the end of the
// events.
func (t *step) walk(ctx context.Context) (found []publicid.Event, last uuid.UUID, over bool, err error) {
	after := t.position()
	if t.request.Position == nil {
		if after, err = t.beginning(ctx); err != nil {
			return nil, after, false, err
		}
	}
	heads, err := EventHeads(ctx, t.Tx, after, event.SubjectBytes, eventsPage)
	if err != nil {
		return nil, after, false, err
	}
	ofPerson, err := t.ofPerson(ctx, heads)
	if err != nil {
		return nil, after, false, err
	}
	for _, h := range heads {
		last = h.ID.UUID()
		if ofPerson[h.ID] {
			if found = append(found, h.ID); len(found) == rowsPage {
				return found, last, false, nil
			}
		}
	}
	return found, last, len(heads) < eventsPage, nil
}

// beginning returns a position before the first event that can name the person. It starts at the
// contact or the oldest noted item, whichever is older. It subtracts a minute, which is more than the
// clocks of two processes differ by.
func (t *step) beginning(ctx context.Context) (uuid.UUID, error) {
	first := t.request.ContactID.Time()
	noted, err := firstNoted(ctx, t.Tx, t.request.ID)
	if err != nil {
		return noted, err
	}
	if noted != uuid.Nil {
		if at := publicid.Of[publicid.Event](noted).Time(); at.Before(first) {
			first = at
		}
	}
	return publicid.EventAt(first.Add(-time.Minute)).UUID(), nil
}

// Sweep finds exports and erasures without a run. The run of one that an operator terminated starts again,
// because a person's right does not end with it.
func (s *Service) Sweep() jobs.Sweep { return jobs.Sweep{Rows: s.overdue} }

const overdueSQL = `
SELECT id, organization_id, created_at FROM subject_requests
WHERE status = 'running' AND created_at <= now() - make_interval(secs => $1) AND (created_at, id) > ($2, $3::uuid)
ORDER BY created_at, id LIMIT $4`

func (s *Service) overdue(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return change.Overdue(ctx, s.store.Across("find running data-subject requests"), overdueSQL, grace, after, limit, Run)
}
