package dispatch

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// RunSubjectRequests queues exports and erasures for their start and returns at once.
func (d *Dispatcher) RunSubjectRequests(running []change.RunningSubjectRequest) {
	enqueueEach(d, "data-subject request", running, func(one change.RunningSubjectRequest) fmt.Stringer { return one.Request }, startSubjectRequest)
}

// startSubjectRequest tells Temporal of nothing but the ids of the receipt and of the organization.
func startSubjectRequest(ctx context.Context, c client.Client, r change.RunningSubjectRequest) error {
	return startRun(ctx, c, r.Request, r.Organization, "exports or erases a person",
		workflows.SubjectRequestName, activities.SubjectParams{Request: r.Request})
}
