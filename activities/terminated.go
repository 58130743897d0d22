package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/delivery"
	"earshot/internal/publicid"
)

// EndTerminatedName is the wire name of the activity.
const EndTerminatedName = "end_terminated"

// terminatedWithin is how far back EndTerminated looks. The sweep runs every minute. If no worker
// runs for longer than this, the deliveries of terminated runs are found when they are overdue.
const terminatedWithin = time.Hour

// EndTerminatedResult counts the deliveries that ended.
type EndTerminatedResult struct {
	GivenUp int `json:"givenUp"`
}

// EndTerminated ends the deliveries of runs that an operator terminated. A terminated run can't do
// so, because it gets no notice.
func (o *Outbox) EndTerminated(ctx context.Context) (EndTerminatedResult, error) {
	var result EndTerminatedResult
	err := o.runs.TerminatedRuns(ctx, time.Now().Add(-terminatedWithin), func(runs []TerminatedRun) error {
		n, err := o.endTerminated(ctx, runs)
		result.GivenUp += n
		activity.RecordHeartbeat(ctx)
		return err
	})
	o.counts.found(ctx, "given_up", result.GivenUp)
	if result.GivenUp > 0 {
		o.log.WarnContext(ctx, "deliveries were given up with their runs", "deliveries", result.GivenUp)
	}
	return result, err
}

func (o *Outbox) endTerminated(ctx context.Context, runs []TerminatedRun) (int, error) {
	var of []delivery.Followed
	for _, run := range runs {
		for _, id := range run.Deliveries {
			of = append(of, delivery.Followed{WorkflowID: run.WorkflowID, ID: id})
		}
	}
	abandoned, err := delivery.Abandoned(ctx, o.store, of)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, f := range abandoned {
		ids = append(ids, f.WorkflowID)
	}
	// A reset also terminates a run, and continues in another one. A run that the server ended is
	// restarted when its deliveries are overdue.
	states, err := runStates(ctx, o.runs.RunStates, ids)
	if err != nil {
		return 0, err
	}
	var end []publicid.Delivery
	for _, f := range abandoned {
		if states[f.WorkflowID] == RunTerminated {
			end = append(end, f.ID)
		}
	}
	given, err := delivery.End(ctx, o.store, "", ErrorGivenUp, end)
	o.counts.failed(ctx, ErrorGivenUp, given)
	return len(end), err
}
