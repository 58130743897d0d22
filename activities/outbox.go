package activities

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/failpoint"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/webhooks"
)

const (
	// sweepPage is how many rows the sweep reads at a time.
	sweepPage = 1000
	// sweepMost is how many deliveries one activity looks at: some seconds of work, where
	// it may take minutes. The workflow then has another go on.
	sweepMost = 20 * sweepPage
	// doubtAfter is how long a delivery may be overdue before Temporal's list, which says
	// that its run is open, is doubted. Who restores Temporal's databases from different
	// moments has a list with runs that aren't there, for good. It is far above what a
	// run waits for its turn, so that few runs have to be asked for one by one.
	doubtAfter = 5 * time.Minute
	// doubtMost is how many of a page are asked for one by one, so that a Temporal that is
	// late with everything isn't asked for all of it every minute. Who is started anew makes
	// room for the next ones at the next sweep.
	doubtMost = 50
)

// RunState is what Temporal knows of a workflow's last run.
type RunState int

// The states. A run that is over came to an end of its own or by the server, or Temporal
// knows of none; a terminated one was ended by an operator without a word to it, or
// canceled.
const (
	RunOver RunState = iota
	RunOpen
	RunTerminated
)

// TerminatedRun is a run of deliver_webhooks that an operator terminated.
type TerminatedRun struct {
	WorkflowID string
	Deliveries []publicid.Delivery
}

// Runs tells what Temporal knows.
type Runs interface {
	// RunStates takes the word of Temporal's list for a run that is open, which saves most of the work.
	RunStates(ctx context.Context, workflowIDs []string) (map[string]RunState, error)
	// RunStatesForSure asks for each run.
	RunStatesForSure(ctx context.Context, workflowIDs []string) (map[string]RunState, error)
	// TerminatedRuns calls do with each page of the runs that were terminated since.
	TerminatedRuns(ctx context.Context, since time.Time, do func([]TerminatedRun) error) error
}

// Outbox finds deliveries that nobody is looking after.
type Outbox struct {
	store    *store.Store
	dispatch change.Dispatcher
	streaks  StreakFollower
	runs     Runs
	counts   *Counts
	log      *slog.Logger
}

// Engine is what the sweep needs of Temporal.
type Engine interface {
	change.Dispatcher
	StreakFollower
	Runs
}

// NewOutbox makes the activities.
func NewOutbox(s *store.Store, e Engine, counts *Counts, log *slog.Logger) *Outbox {
	return &Outbox{store: s, dispatch: e, streaks: e, runs: e, counts: counts, log: log}
}

// SweepParams say what counts as forgotten.
type SweepParams struct {
	// Grace is how long a delivery may be overdue.
	Grace time.Duration `json:"grace"`
	// Before takes the place of the grace where it is set: what was overdue then.
	Before time.Time `json:"before,omitzero"`
	// From is where the activity before came to; nil in the first.
	From *SweepPlace `json:"from,omitempty"`
}

// SweepPlace is the last delivery that was looked at.
type SweepPlace struct {
	DueAt time.Time         `json:"dueAt"`
	ID    publicid.Delivery `json:"id"`
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
	// SubjectRequests are exports and erasures of persons that nobody did.
	SubjectRequests int `json:"subjectRequests,omitempty"`
	// Backfills are searches for contacts in old activity that nobody did.
	Backfills int `json:"backfills,omitempty"`
	// Streaks that are long enough to disable their webhook, and didn't.
	Streaks int `json:"streaks,omitempty"`
	// Interactions whose link should have been mailed, or whose time is up.
	Interactions int `json:"interactions,omitempty"`
	// Subscribers are organizations whose end-users should have been told of something.
	Subscribers int `json:"subscribers,omitempty"`
	// GivenUp are deliveries whose run an operator terminated.
	GivenUp int `json:"givenUp,omitempty"`
	// Next is where to go on; nil when all was looked at.
	Next *SweepPlace `json:"next,omitempty"`
}

// Add takes in what a part of the sweep found.
func (r *SweepResult) Add(part SweepResult) {
	r.NeverStarted += part.NeverStarted
	r.Lost += part.Lost
	r.Entries += part.Entries
	r.Recoveries += part.Recoveries
	r.SubjectRequests += part.SubjectRequests
	r.Backfills += part.Backfills
	r.Streaks += part.Streaks
	r.Interactions += part.Interactions
	r.Subscribers += part.Subscribers
	r.GivenUp += part.GivenUp
}

// SweepOutbox starts again every pending delivery that is overdue and has no open
// workflow, and what else has none that should. Starting one too many does no harm:
// the rows decide. A delivery whose workflow an operator terminated ends instead. It
// looks at so many deliveries and tells where to go on; at all else when it begins.
func (o *Outbox) SweepOutbox(ctx context.Context, p SweepParams) (result SweepResult, err error) {
	defer func() { o.counts.sweep(ctx, result, err) }()
	if p.From == nil {
		for _, part := range []func(context.Context, time.Duration, *SweepResult) error{
			o.sweepEntries, o.sweepRecoveries, o.sweepSubjectRequests, o.sweepBackfills, o.sweepStreaks, o.sweepInteractions,
			o.sweepSubscribers,
		} {
			if err := part(ctx, p.grace(), &result); err != nil {
				return result, err
			}
		}
	}
	if err := o.sweepDeliveries(ctx, p, &result); err != nil {
		return result, err
	}
	found := result
	found.Next = nil // the place to go on from is nothing that was started
	if found != (SweepResult{}) {
		o.log.WarnContext(ctx, "sweep started what was overdue", "neverStarted", result.NeverStarted, "lost", result.Lost,
			"entries", result.Entries, "recoveries", result.Recoveries, "subjectRequests", result.SubjectRequests, "backfills", result.Backfills,
			"streaks", result.Streaks, "interactions", result.Interactions, "subscribers", result.Subscribers, "givenUp", result.GivenUp)
	}
	return result, nil
}

func (o *Outbox) sweepDeliveries(ctx context.Context, p SweepParams, result *SweepResult) error {
	var last store.Overdue
	if p.From != nil {
		last.DueAt, last.ID = p.From.DueAt, p.From.ID
	}
	for range sweepMost / sweepPage {
		rows, err := o.store.OverdueDeliveries(ctx, p.grace(), last, sweepPage)
		if err != nil {
			return err
		}
		if err := o.sweepRows(ctx, rows, result); err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
	result.Next = &SweepPlace{DueAt: last.DueAt, ID: last.ID}
	return nil
}

func (o *Outbox) sweepRows(ctx context.Context, rows []store.Overdue, result *SweepResult) error {
	var listed, doubted []string
	for _, r := range rows {
		if time.Since(r.DueAt) < doubtAfter || len(doubted) == doubtMost {
			listed = append(listed, r.WorkflowID)
		} else {
			doubted = append(doubted, r.WorkflowID)
		}
	}
	states, err := runStates(ctx, o.runs.RunStates, listed)
	if err != nil {
		return err
	}
	sure, err := runStates(ctx, o.runs.RunStatesForSure, doubted)
	if err != nil {
		return err
	}
	maps.Copy(states, sure)
	var start []change.PendingDelivery
	var end []publicid.Delivery
	for _, r := range rows {
		switch state := states[r.WorkflowID]; {
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
	given, err := o.store.EndDeliveries(ctx, "", ErrorGivenUp, end)
	if err != nil {
		return err
	}
	o.counts.failed(ctx, ErrorGivenUp, given)
	result.GivenUp += len(end)
	if len(start) > 0 {
		failpoint.Hit(failpoint.SweepFound)
	}
	o.dispatch.Deliver(start)
	return nil
}

// runStates asks once for the deliveries of one run, and for none where there is none.
func runStates(
	ctx context.Context, ask func(context.Context, []string) (map[string]RunState, error), workflowIDs []string,
) (map[string]RunState, error) {
	slices.Sort(workflowIDs)
	workflowIDs = slices.Compact(workflowIDs)
	if len(workflowIDs) > 0 && workflowIDs[0] == "" {
		workflowIDs = workflowIDs[1:]
	}
	states := make(map[string]RunState, len(workflowIDs))
	// A few seconds of work each, if all of them must be looked at.
	for some := range slices.Chunk(workflowIDs, 500) {
		found, err := ask(ctx, some)
		if err != nil {
			return nil, err
		}
		maps.Copy(states, found)
		activity.RecordHeartbeat(ctx)
	}
	return states, nil
}

func (o *Outbox) sweepEntries(ctx context.Context, grace time.Duration, result *SweepResult) error {
	due, err := o.store.OverdueEntries(ctx, grace, sweepPage)
	if err != nil {
		return err
	}
	late := make([]change.ScheduledEntry, len(due))
	for i, e := range due {
		late[i] = change.ScheduledEntry{Entry: e.ID, Organization: e.Organization}
	}
	o.dispatch.PublishWhenDue(late)
	result.Entries = len(late)
	return nil
}

// sweepStreaks has those followed whose last signal was lost with its process.
func (o *Outbox) sweepStreaks(ctx context.Context, _ time.Duration, result *SweepResult) error {
	failing, err := o.store.FailingWebhooks(ctx, webhooks.MaxConsecutiveFailures)
	if err != nil {
		return err
	}
	for _, id := range failing {
		if err := o.streaks.StreakGrew(ctx, id); err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx)
	}
	result.Streaks = len(failing)
	return nil
}

func dispatchOf(r store.Overdue) change.PendingDelivery {
	return change.PendingDelivery{
		ID: r.ID, Webhook: r.Webhook, Organization: r.Organization, EventType: r.EventType, Host: change.HostOf(r.URL),
	}
}
