package activities

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/feedback"
	"earshot/internal/store"
)

// sweepPage is how many rows the sweep reads at a time.
const sweepPage = 1000

// Runs tells whether a workflow is open.
type Runs interface {
	IsOpen(ctx context.Context, workflowID string) (bool, error)
}

// Outbox finds deliveries that nobody is looking after.
type Outbox struct {
	store    *store.Store
	dispatch feedback.Dispatcher
	runs     Runs
	log      *slog.Logger
}

// NewOutbox makes the activity.
func NewOutbox(s *store.Store, dispatch feedback.Dispatcher, runs Runs, log *slog.Logger) *Outbox {
	return &Outbox{store: s, dispatch: dispatch, runs: runs, log: log}
}

// SweepParams say what counts as forgotten.
type SweepParams struct {
	// Grace is how long a delivery may be overdue.
	Grace time.Duration `json:"grace"`
}

// SweepResult tells what the sweep found.
type SweepResult struct {
	// NeverStarted had no workflow yet, Lost had one that is no longer open.
	NeverStarted int `json:"neverStarted"`
	Lost         int `json:"lost"`
	// Entries of the changelog that should have been published.
	Entries int `json:"entries,omitempty"`
}

// SweepOutbox starts again every pending delivery that is overdue and has no
// open workflow. Starting one too many does no harm: the rows decide.
func (o *Outbox) SweepOutbox(ctx context.Context, p SweepParams) (SweepResult, error) {
	var result SweepResult
	open := map[string]bool{}
	var last store.Overdue
	for {
		rows, err := o.store.OverdueDeliveries(ctx, p.Grace, last, sweepPage)
		if err != nil {
			return result, err
		}
		var start []feedback.Dispatch
		for _, r := range rows {
			known, seen := open[r.WorkflowID]
			if r.WorkflowID != "" && !seen {
				if known, err = o.runs.IsOpen(ctx, r.WorkflowID); err != nil {
					return result, err
				}
				open[r.WorkflowID] = known
			}
			switch {
			case r.WorkflowID == "":
				result.NeverStarted++
			case known:
				continue
			default:
				result.Lost++
			}
			start = append(start, dispatchOf(r))
		}
		o.dispatch.Dispatch(start)
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			break
		}
		last = rows[len(rows)-1]
	}
	due, err := o.store.OverdueEntries(ctx, p.Grace, sweepPage)
	if err != nil {
		return result, err
	}
	late := make([]feedback.Schedule, len(due))
	for i, e := range due {
		late[i] = feedback.Schedule{Entry: e.ID, Organization: e.Organization}
	}
	o.dispatch.Schedule(late)
	result.Entries = len(late)
	countSwept(ctx, result)
	if result != (SweepResult{}) {
		o.log.WarnContext(ctx, "sweep started what was overdue",
			"neverStarted", result.NeverStarted, "lost", result.Lost, "entries", result.Entries)
	}
	return result, nil
}

func dispatchOf(r store.Overdue) feedback.Dispatch {
	d := feedback.Dispatch{ID: r.ID, Webhook: r.Webhook, Organization: r.Organization, EventType: r.EventType}
	if u, err := url.Parse(r.URL); err == nil {
		d.Host = u.Host
	}
	return d
}
