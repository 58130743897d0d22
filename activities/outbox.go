package activities

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/failpoint"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// sweepPage is how many rows the sweep reads at a time.
const sweepPage = 1000

// RunState is what Temporal knows of a workflow's last run.
type RunState int

// The states. An unknown run is none, or one that Temporal has forgotten; a
// terminated one was ended by an operator without a word to it, or canceled; a
// closed one came to an end of its own.
const (
	RunUnknown RunState = iota
	RunOpen
	RunTerminated
	RunClosed
)

// TerminatedRun is a run of deliver_webhooks that an operator terminated.
type TerminatedRun struct {
	WorkflowID string
	Deliveries []publicid.Delivery
}

// Runs tells what Temporal knows.
type Runs interface {
	RunState(ctx context.Context, workflowID string) (RunState, error)
	// TerminatedRuns calls do for each run that was terminated since.
	TerminatedRuns(ctx context.Context, since time.Time, do func(TerminatedRun) error) error
}

// Outbox finds deliveries that nobody is looking after.
type Outbox struct {
	store    *store.Store
	dispatch feedback.Dispatcher
	streaks  StreakFollower
	runs     Runs
	log      *slog.Logger
}

// Engine is what the sweep needs of Temporal.
type Engine interface {
	feedback.Dispatcher
	StreakFollower
	Runs
}

// NewOutbox makes the activities.
func NewOutbox(s *store.Store, e Engine, log *slog.Logger) *Outbox {
	return &Outbox{store: s, dispatch: e, streaks: e, runs: e, log: log}
}

// SweepParams say what counts as forgotten.
type SweepParams struct {
	// Grace is how long a delivery may be overdue.
	Grace time.Duration `json:"grace"`
	// Before takes the place of the grace where it is set: what was overdue then.
	Before time.Time `json:"before,omitzero"`
}

func (p SweepParams) grace() time.Duration {
	if p.Before.IsZero() {
		return p.Grace
	}
	return time.Since(p.Before)
}

// SweepResult tells what the sweep found.
type SweepResult struct {
	// NeverStarted had no workflow yet, Lost had one that is no longer open.
	NeverStarted int `json:"neverStarted"`
	Lost         int `json:"lost"`
	// Entries of the changelog that should have been published.
	Entries int `json:"entries,omitempty"`
	// Recoveries that nobody ran.
	Recoveries int `json:"recoveries,omitempty"`
	// Streaks that are long enough to disable their webhook, and didn't.
	Streaks int `json:"streaks,omitempty"`
	// GivenUp are deliveries whose run an operator terminated.
	GivenUp int `json:"givenUp,omitempty"`
}

// SweepOutbox starts again every pending delivery that is overdue and has no open
// workflow, and what else has none that should. Starting one too many does no harm:
// the rows decide. A delivery whose workflow an operator terminated ends instead.
func (o *Outbox) SweepOutbox(ctx context.Context, p SweepParams) (SweepResult, error) {
	var result SweepResult
	for _, part := range []func(context.Context, time.Duration, *SweepResult) error{
		o.sweepDeliveries, o.sweepEntries, o.sweepRecoveries, o.sweepStreaks,
	} {
		if err := part(ctx, p.grace(), &result); err != nil {
			return result, err
		}
	}
	countSwept(ctx, result)
	if result != (SweepResult{}) {
		o.log.WarnContext(ctx, "sweep started what was overdue", "neverStarted", result.NeverStarted, "lost", result.Lost,
			"entries", result.Entries, "recoveries", result.Recoveries, "streaks", result.Streaks, "givenUp", result.GivenUp)
	}
	return result, nil
}

func (o *Outbox) sweepDeliveries(ctx context.Context, grace time.Duration, result *SweepResult) error {
	states := map[string]RunState{}
	var last store.Overdue
	for {
		rows, err := o.store.OverdueDeliveries(ctx, grace, last, sweepPage)
		if err != nil {
			return err
		}
		var start []feedback.PendingDelivery
		var end []publicid.Delivery
		for _, r := range rows {
			state, err := o.stateOf(ctx, r.WorkflowID, states)
			if err != nil {
				return err
			}
			switch {
			case r.WorkflowID == "":
				result.NeverStarted++
				start = append(start, dispatchOf(r))
			case state == RunTerminated:
				end = append(end, r.ID)
			case state != RunOpen:
				result.Lost++
				start = append(start, dispatchOf(r))
			}
		}
		if err := o.store.EndDeliveries(ctx, "", ErrorGivenUp, end); err != nil {
			return err
		}
		result.GivenUp += len(end)
		if len(start) > 0 {
			failpoint.Hit(failpoint.SweepFound)
		}
		o.dispatch.Deliver(start)
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}

// stateOf asks once for the deliveries of one run.
func (o *Outbox) stateOf(ctx context.Context, workflowID string, known map[string]RunState) (RunState, error) {
	state, ok := known[workflowID]
	if ok || workflowID == "" {
		return state, nil
	}
	state, err := o.runs.RunState(ctx, workflowID)
	known[workflowID] = state
	return state, err
}

func (o *Outbox) sweepEntries(ctx context.Context, grace time.Duration, result *SweepResult) error {
	due, err := o.store.OverdueEntries(ctx, grace, sweepPage)
	if err != nil {
		return err
	}
	late := make([]feedback.ScheduledEntry, len(due))
	for i, e := range due {
		late[i] = feedback.ScheduledEntry{Entry: e.ID, Organization: e.Organization}
	}
	o.dispatch.PublishWhenDue(late)
	result.Entries = len(late)
	return nil
}

// sweepStreaks has those followed whose last signal was lost with its process.
func (o *Outbox) sweepStreaks(ctx context.Context, _ time.Duration, result *SweepResult) error {
	failing, err := o.store.FailingWebhooks(ctx, feedback.MaxConsecutiveFailures)
	if err != nil {
		return err
	}
	for _, id := range failing {
		if err := o.streaks.StreakGrew(ctx, id); err != nil {
			return err
		}
	}
	result.Streaks = len(failing)
	return nil
}

// terminatedWithin is how far back EndTerminated looks. The sweep comes every
// minute; what was terminated while no worker ran for longer is found when it is
// overdue.
const terminatedWithin = time.Hour

// EndTerminatedResult tells how many deliveries ended.
type EndTerminatedResult struct {
	GivenUp int `json:"givenUp"`
}

// EndTerminated ends the deliveries of runs that an operator terminated. The run
// can't: it isn't told.
func (o *Outbox) EndTerminated(ctx context.Context) (EndTerminatedResult, error) {
	var result EndTerminatedResult
	states := map[string]RunState{}
	err := o.runs.TerminatedRuns(ctx, time.Now().Add(-terminatedWithin), func(run TerminatedRun) error {
		activity.RecordHeartbeat(ctx)
		rows, err := o.store.Abandoned(ctx, run.WorkflowID, run.Deliveries)
		if err != nil || len(rows) == 0 {
			return err
		}
		// A reset terminates a run too, and goes on in another.
		if state, err := o.stateOf(ctx, run.WorkflowID, states); err != nil || state != RunTerminated {
			return err
		}
		if err := o.store.EndDeliveries(ctx, "", ErrorGivenUp, rows); err != nil {
			return err
		}
		result.GivenUp += len(rows)
		o.log.WarnContext(ctx, "deliveries were given up with their run", "workflowId", run.WorkflowID, "deliveries", len(rows))
		return nil
	})
	countGivenUp(ctx, result.GivenUp)
	return result, err
}

func dispatchOf(r store.Overdue) feedback.PendingDelivery {
	d := feedback.PendingDelivery{ID: r.ID, Webhook: r.Webhook, Organization: r.Organization, EventType: r.EventType}
	if u, err := url.Parse(r.URL); err == nil {
		d.Host = u.Host
	}
	return d
}
