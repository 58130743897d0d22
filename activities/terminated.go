package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

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
	var of []store.Followed
	for _, run := range runs {
		for _, id := range run.Deliveries {
			of = append(of, store.Followed{WorkflowID: run.WorkflowID, ID: id})
		}
	}
	abandoned, err := o.store.Abandoned(ctx, of)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, f := range abandoned {
		ids = append(ids, f.WorkflowID)
	}
	// A reset terminates a run too, and goes on in another; and one that the server ended
	// is started again when its deliveries are overdue.
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
	given, err := o.store.EndDeliveries(ctx, "", ErrorGivenUp, end)
	o.counts.failed(ctx, ErrorGivenUp, given)
	return len(end), err
}
