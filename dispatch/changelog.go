package dispatch

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// PublishWhenDue queues changelog entries whose publication was set, moved or taken
// away, and returns at once.
func (d *Dispatcher) PublishWhenDue(entries []change.ScheduledEntry) {
	enqueueEach(d, "changelog entry", entries, func(one change.ScheduledEntry) fmt.Stringer { return one.Entry }, reschedule)
}

// reschedule makes a run that is open look at the entry again; a closed one is
// followed by another.
func reschedule(ctx context.Context, c client.Client, e change.ScheduledEntry) error {
	_, err := c.SignalWithStartWorkflow(ctx, e.Entry.String(), workflows.RescheduledSignal, nil, client.StartWorkflowOptions{
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.OrganizationIDs.ValueSet([]string{e.Organization.String()})),
		Priority:              fairTo(e.Organization),
		StaticSummary:         "publishes a changelog entry when it is due",
	}, workflows.PublishChangelogName, activities.PublishParams{Entry: e.Entry})
	return err
}
