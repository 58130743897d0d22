package workflows

import "go.temporal.io/sdk/workflow"

// This file lists what a workflow does today that runs which are open may not have
// begun with. docs/changing-a-workflow.md tells how to add to it.

// deliver_webhooks is too busy for the marker that workflow.GetVersion leaves in
// each history, so the dispatcher says in the params which version a run begins with.
const (
	// showsStatus: the status is a search attribute, from the start to the end.
	showsStatus = 1
	// mindsCancellation: one that comes before the first attempts keeps them
	// from being made.
	mindsCancellation = 2
	// countsFromItsBeginning: attempts are due at whole seconds of the run's age. They
	// were at whole seconds of the clock, so those of all runs came at once.
	countsFromItsBeginning = 3
	// deliverVersion is the newest.
	deliverVersion = countsFromItsBeginning
)

// endsTerminated: the sweep also ends the deliveries of runs that were terminated.
func endsTerminated(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "end-terminated", workflow.DefaultVersion, 1) >= 1
}

// endsTerminatedFirst: it does so before it starts what nobody started.
func endsTerminatedFirst(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "end-terminated-first", workflow.DefaultVersion, 1) >= 1
}

// continuesAsNew: a run of deliver_webhooks whose history becomes long continues as a
// new one. It is asked only where Temporal suggests it, so other histories have no
// marker; what an open run did at such a point before stays as it was.
func continuesAsNew(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "continue-as-new", workflow.DefaultVersion, 1) >= 1
}
