package subjects

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
	"earshot/internal/publicid"
	"earshot/internal/store"
)

const (
	// rowsPage is how many posts, votes, comments or events a transaction comes to: at 300 KB, the
	// largest that a post or a payload can be, they are 15 MB.
	rowsPage = 50
	// eventsPage is how many events it walks past, by their first bytes: some milliseconds.
	eventsPage = 2000
	// answersPage is how many answers of receivers, of 1 KiB or less, it clears.
	answersPage = 1000
)

// Progress tells how far a request is. The status is the row's, and empty where it is gone.
type Progress struct {
	Kind, Status string
	// Wait says that there is nothing to do until attempts that are under way have ended.
	Wait bool
}

// step is one page of a request that runs, with its row locked.
type step struct {
	*change.Change
	*Service
	request *db.SubjectRequest
	update  *db.SubjectRequestUpdateOne
	records int
	wait    bool
}

// steps are what is done at each stage.
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

// Continue goes on with a request by one page. The row goes on in the same transaction, so nothing is
// done twice when it is asked again after a kill. It acts for the service, and whatever the billing
// state: what was accepted happens.
func (s *Service) Continue(ctx context.Context, id publicid.SubjectRequest) (p Progress, err error) {
	all := store.System(ctx, "a data-subject request belongs to the service once it is accepted")
	found, err := s.store.Client().SubjectRequest.Query().Where(subjectrequest.ID(id)).Only(all)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, errors.Wrap(err, "load the data-subject request")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		r, err := c.SubjectRequest.Query().Where(subjectrequest.ID(id)).ForUpdate(store.NoKeyUpdate).Only(ctx)
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

// next goes on with the next stage.
func (t *step) next(stage string) { t.update.SetStage(stage).ClearPosition() }

// nextAfter goes on behind the last row of a page, or with the next stage where that was the last page.
func (t *step) nextAfter(rows int, last func() uuid.UUID, stage string) {
	if rows < rowsPage {
		t.next(stage)
	} else {
		t.update.SetPosition(last())
	}
}

// position is where the stage has come to; zero is its beginning.
func (t *step) position() uuid.UUID {
	if t.request.Position == nil {
		return uuid.Nil
	}
	return *t.request.Position
}

// walk finds the next events of the organization that name the person, or one of what the request
// has noted: their ids, and the last event that it has looked at. Over says that there are no more.
func (t *step) walk(ctx context.Context) (found []publicid.Event, last uuid.UUID, over bool, err error) {
	after := t.position()
	if t.request.Position == nil {
		if after, err = t.beginning(ctx); err != nil {
			return nil, after, false, err
		}
	}
	heads, err := store.EventHeads(ctx, t.Tx, t.request.OrganizationID, after, event.SubjectBytes, eventsPage)
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

// beginning is before the first event that can name the person: that of the contact, or of what it
// wrote, whichever came first. A minute is more than the clocks of two processes differ by.
func (t *step) beginning(ctx context.Context) (uuid.UUID, error) {
	first := t.request.ContactID.Time()
	noted, err := store.FirstNoted(ctx, t.Tx, t.request.ID)
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
