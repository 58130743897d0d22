package workflows

import "go.temporal.io/sdk/workflow"

// This file lists changes to workflows that older open runs must not see. See
// docs/changing-a-workflow.md for the steps to add one.

// deliver_webhooks runs too often for the marker that workflow.GetVersion leaves in each history.
// The dispatcher therefore puts the version into the params when it starts a run.
const (
	// showsStatus: the run has its status as a search attribute from start to end.
	showsStatus = 1
	// mindsCancellation: a cancellation before the first attempts prevents them.
	mindsCancellation = 2
	// countsFromItsBeginning: attempts are due at whole seconds of the run's age. Before, they were
	// due at whole seconds of the clock, so the attempts of all runs came at the same moment.
	countsFromItsBeginning = 3
	// deliverVersion is the newest version.
	deliverVersion = countsFromItsBeginning
)

// endsTerminated: the sweep also ends the deliveries of runs that were terminated.
func endsTerminated(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "end-terminated", workflow.DefaultVersion, 1) >= 1
}

// endsTerminatedFirst: the sweep ends those deliveries before it starts the missing workflows.
func endsTerminatedFirst(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "end-terminated-first", workflow.DefaultVersion, 1) >= 1
}

// sweepsByParts: each part of the sweep is an activity of its own.
func sweepsByParts(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "sweep-parts", workflow.DefaultVersion, 1) >= 1
}

// listsItsParts: the history has the names of the sweep's parts, so that a release can add a part.
func listsItsParts(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "sweep-lists-parts", workflow.DefaultVersion, 1) >= 1
}

// sweepsOthersTogether: the parts of the sweep after the deliveries share an activity.
func sweepsOthersTogether(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "sweep-others-together", workflow.DefaultVersion, 1) >= 1
}

// continuesAsNew: a run of deliver_webhooks with a long history continues as a new one. The version
// is read only when Temporal suggests a new run, so most histories have no marker. An open run that
// has already passed such a point keeps its old behavior there.
func continuesAsNew(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "continue-as-new", workflow.DefaultVersion, 1) >= 1
}
