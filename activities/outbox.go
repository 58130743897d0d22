package activities

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/delivery"
	"earshot/internal/failpoint"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// SweepName is the wire name of the activity.
const SweepName = "sweep_outbox_rows"

const (
	// sweepPage is the number of rows that the sweep reads at a time.
	sweepPage = 1000
	// sweepMost is the number of deliveries for one activity. They take seconds, and its timeout is
	// minutes. The workflow then runs the next activity.
	sweepMost = 20 * sweepPage
	// doubtAfter is the delay after which the sweep no longer trusts an open run in Temporal's
	// list. If Temporal's databases are restored from different moments, the list contains runs
	// that no longer exist. The limit is far above the time that a run waits for its turn, so that
	// few runs need a lookup of their own.
	doubtAfter = 5 * time.Minute
	// doubtMost is the maximum number of single lookups per page. It protects a slow Temporal from
	// a lookup for each overdue delivery every minute. A restarted delivery is no longer overdue,
	// so the next sweep reaches the following ones.
	doubtMost = 50
)

// RunState is the state of a workflow's last run in Temporal.
type RunState int

// The states of a run. RunOver: the run ended normally or was ended by the server, or there is no
// run. RunTerminated: an operator terminated or canceled the run.
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

// Runs reads the states of runs from Temporal. After an error, the states of some runs are missing.
type Runs interface {
	// RunStates trusts Temporal's list for open runs, which saves most of the calls.
	RunStates(ctx context.Context, workflowIDs []string) (map[string]RunState, error)
	// RunStatesForSure looks up each run.
	RunStatesForSure(ctx context.Context, workflowIDs []string) (map[string]RunState, error)
	// TerminatedRuns calls do with each page of the runs that were terminated since.
	TerminatedRuns(ctx context.Context, since time.Time, do func([]TerminatedRun) error) error
}

// Outbox finds deliveries, and rows of other jobs, that no run is working on.
type Outbox struct {
	store    *postgres.DB
	dispatch change.Dispatcher
	runs     Runs
	swept    swept
	counts   *Counts
	log      *slog.Logger
}

// Engine is the part of Temporal that the sweep needs.
type Engine interface {
	change.Dispatcher
	Runs
}

func newOutbox(s *postgres.DB, e Engine, services swept, counts *Counts, log *slog.Logger) *Outbox {
	return &Outbox{store: s, dispatch: e, runs: e, swept: services, counts: counts, log: log}
}

// deliveriesPart is the part of the sweep that finds deliveries.
const deliveriesPart = "deliveries"

// SweepParams say which part of the sweep runs, and which rows count as forgotten.
type SweepParams struct {
	// Part is one of SweepParts(). It is empty in runs of earlier releases, which then sweep all parts.
	Part string `json:"part,omitempty"`
	// Parts are the parts of an activity that sweeps several. Earlier releases ignore it and sweep all parts.
	Parts []string `json:"parts,omitempty"`
	// Grace is how long a delivery may be overdue before the sweep handles it.
	Grace time.Duration `json:"grace"`
	// Before replaces the grace if it is set: the sweep handles deliveries that were due before it.
	Before time.Time `json:"before,omitzero"`
	// From is the place where the previous activity stopped; nil in the first.
	From *SweepPlace `json:"from,omitempty"`
}

// SweepPlace is the last delivery that was checked.
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

// SweepResult counts the findings of the sweep. An activity that is retried counts only the findings
// of its last try, because the earlier tries have restarted theirs.
type SweepResult struct {
	// NeverStarted counts deliveries without a workflow, Lost those whose workflow is no longer
	// open.
	NeverStarted int `json:"neverStarted"`
	Lost         int `json:"lost"`
	// Restarted counts the runs of other jobs whose rows were overdue.
	Restarted int `json:"restarted,omitempty"`
	// GivenUp counts deliveries whose run was terminated by an operator.
	GivenUp int `json:"givenUp,omitempty"`
	// Unknown counts overdue deliveries whose run could not be looked up. The next sweep looks again.
	Unknown int `json:"unknown,omitempty"`
	// Next is the place to continue from; nil when the sweep is complete.
	Next *SweepPlace `json:"next,omitempty"`
	// Failed names those of SweepParams.Parts that failed.
	Failed []string `json:"failed,omitempty"`
}

// found reports whether the sweep found anything.
func (r *SweepResult) found() bool {
	return r.NeverStarted+r.Lost+r.Restarted+r.GivenUp+r.Unknown > 0
}

// Add adds the result of a part of the sweep.
func (r *SweepResult) Add(part SweepResult) {
	r.NeverStarted += part.NeverStarted
	r.Lost += part.Lost
	r.Restarted += part.Restarted
	r.GivenUp += part.GivenUp
	r.Unknown += part.Unknown
}

// SweepOutbox restarts the missing workflows of a part. For deliveries, it restarts every pending one
// that is overdue and has no open workflow, and ends those of runs that an operator terminated. An
// unnecessary start does no harm, because the rows decide. Each call handles a limited number of
// deliveries and returns the place to continue from.
//
// With several parts, one that fails or takes too long stops no other. The result names it, and the
// workflow tries it again.
func (o *Outbox) SweepOutbox(ctx context.Context, p SweepParams) (SweepResult, error) {
	switch {
	case p.Part != "":
		return o.sweepPart(ctx, p)
	case p.Parts != nil:
		result, _ := o.sweepParts(ctx, p) // logged, and named in the result
		return result, ctx.Err()
	case p.From != nil:
		p.Parts = []string{deliveriesPart} // the other parts ran in the first call
	default:
		p.Parts = SweepParts()
	}
	return o.sweepParts(ctx, p)
}

// sweepParts sweeps one part after the other, so that one connection is enough. No part takes more than
// its share of the activity's time. The error has the errors of all parts.
func (o *Outbox) sweepParts(ctx context.Context, p SweepParams) (result SweepResult, err error) {
	deadline, _ := ctx.Deadline()                                 // each activity has one
	share := time.Until(deadline) / time.Duration(len(p.Parts)+1) // one more is left for the rest
	var failed []error
	for _, p.Part = range p.Parts {
		limited, cancel := context.WithTimeout(ctx, share)
		part, err := o.sweepPart(limited, p)
		cancel()
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		if err != nil {
			o.log.WarnContext(ctx, "a part of the sweep failed", "error", err)
			result.Failed, failed = append(result.Failed, p.Part), append(failed, err)
			continue
		}
		result.Add(part)
		if part.Next != nil {
			result.Next = part.Next
		}
		activity.RecordHeartbeat(ctx)
	}
	return result, errors.Join(failed...)
}

func (o *Outbox) sweepPart(ctx context.Context, p SweepParams) (result SweepResult, err error) {
	defer func() { o.counts.sweep(ctx, p.Part, result, err) }()
	if p.Part == deliveriesPart {
		err = o.sweepDeliveries(ctx, p, &result)
	} else {
		at := slices.Index(SweepParts(), p.Part)
		if at < 0 {
			return result, errors.Errorf("this release has no part %q", p.Part) // a worker of another release retries it
		}
		err = o.sweepJob(ctx, sweeps[at-1].of(o.swept), p.grace(), &result)
	}
	if err != nil {
		return result, errors.Wrapf(err, "sweep %s", p.Part)
	}
	if result.found() {
		o.log.WarnContext(ctx, "sweep started overdue work", "part", p.Part, "neverStarted", result.NeverStarted, "lost", result.Lost,
			"restarted", result.Restarted, "givenUp", result.GivenUp, "unknown", result.Unknown)
	}
	return result, nil
}

// sweepJob sends the requests of all overdue rows of a job that have no open run, page by page.
func (o *Outbox) sweepJob(ctx context.Context, s jobs.Sweep, grace time.Duration, result *SweepResult) error {
	for after := (jobs.Overdue{}); ; {
		rows, err := s.Rows(ctx, grace, after, sweepPage)
		if err != nil {
			return err
		}
		states, err := o.statesOf(ctx, s.Ask, rows)
		if err != nil {
			return err
		}
		var missing []jobs.Request
		for _, r := range rows {
			switch state := states[r.Request.ID]; {
			case state == RunOpen:
			case state == RunTerminated && r.Ended != nil:
				if err := r.Ended(ctx); err != nil {
					return err
				}
			default:
				missing = append(missing, r.Request)
			}
		}
		o.dispatch.Queue(missing)
		result.Restarted += len(missing)
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		after = rows[len(rows)-1]
	}
}

// statesOf looks up the runs of rows. A missing state counts as RunOver.
func (o *Outbox) statesOf(ctx context.Context, how jobs.Ask, rows []jobs.Overdue) (map[string]RunState, error) {
	ask := o.runs.RunStatesForSure
	switch how {
	case jobs.NoRuns:
		return nil, nil
	case jobs.ListedRuns:
		ask = o.runs.RunStates
	case jobs.EachRun:
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Request.ID
	}
	return runStates(ctx, ask, ids)
}

func (o *Outbox) sweepDeliveries(ctx context.Context, p SweepParams, result *SweepResult) error {
	var last delivery.Overdue
	if p.From != nil {
		last.DueAt, last.ID = p.From.DueAt, p.From.ID
	}
	for range sweepMost / sweepPage {
		rows, err := delivery.FindOverdue(ctx, o.store, p.grace(), last, sweepPage)
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

func (o *Outbox) sweepRows(ctx context.Context, rows []delivery.Overdue, result *SweepResult) error {
	var never []change.PendingDelivery
	var listed, doubted []string
	for _, r := range rows {
		switch {
		case r.WorkflowID == "":
			never = append(never, dispatchOf(r))
		case time.Since(r.DueAt) < doubtAfter || len(doubted) == doubtMost:
			listed = append(listed, r.WorkflowID)
		default:
			doubted = append(doubted, r.WorkflowID)
		}
	}
	if len(never) > 0 {
		failpoint.Hit(failpoint.SweepFound)
	}
	// These need no lookup, so they start even if Temporal answers none.
	o.dispatch.Deliver(never)
	result.NeverStarted += len(never)
	states := map[string]RunState{}
	for _, look := range []struct {
		ask func(context.Context, []string) (map[string]RunState, error)
		ids []string
	}{{o.runs.RunStates, listed}, {o.runs.RunStatesForSure, doubted}} {
		found, err := runStates(ctx, look.ask, look.ids)
		if err != nil {
			o.log.ErrorContext(ctx, "the runs of overdue deliveries could not be looked up", "error", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		maps.Copy(states, found)
	}
	var lost []change.PendingDelivery
	var end []publicid.Delivery
	for _, r := range rows {
		state, known := states[r.WorkflowID]
		switch {
		case r.WorkflowID == "", state == RunOpen:
		case !known:
			result.Unknown++
		case state == RunTerminated:
			end = append(end, r.ID)
		default:
			lost = append(lost, dispatchOf(r))
		}
	}
	if len(lost) > 0 {
		failpoint.Hit(failpoint.SweepFound)
	}
	o.dispatch.Deliver(lost)
	result.Lost += len(lost)
	given, err := delivery.End(ctx, o.store, "", ErrorGivenUp, end)
	if err != nil {
		return err
	}
	o.counts.failed(ctx, ErrorGivenUp, given)
	result.GivenUp += len(end)
	return nil
}

// runStates looks up each distinct run once. After an error it returns the states that it has found.
func runStates(
	ctx context.Context, ask func(context.Context, []string) (map[string]RunState, error), workflowIDs []string,
) (states map[string]RunState, last error) {
	slices.Sort(workflowIDs)
	workflowIDs = slices.Compact(workflowIDs)
	states = make(map[string]RunState, len(workflowIDs))
	// Each chunk takes a few seconds if all of its runs need a lookup.
	for some := range slices.Chunk(workflowIDs, 500) {
		found, err := ask(ctx, some)
		maps.Copy(states, found)
		if err != nil {
			last = err
		}
		if ctx.Err() != nil {
			break
		}
		activity.RecordHeartbeat(ctx)
	}
	return states, last
}

func dispatchOf(r delivery.Overdue) change.PendingDelivery {
	return change.PendingDelivery{
		ID: r.ID, Webhook: r.Webhook, Organization: r.Organization, EventType: r.EventType, Host: change.HostOf(r.URL),
	}
}
