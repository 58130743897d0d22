package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/store"
)

// sweepSubjectRequests starts every export and erasure again that should run and doesn't, also one
// whose run an operator terminated: what a person is owed doesn't end so.
func (o *Outbox) sweepSubjectRequests(ctx context.Context, grace time.Duration, result *SweepResult) error {
	var last store.RunningSubjectRequest
	for {
		rows, err := o.store.RunningSubjectRequests(ctx, grace, last, sweepPage)
		if err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = r.ID.String()
		}
		states, err := runStates(ctx, o.runs.RunStatesForSure, ids) // there are few
		if err != nil {
			return err
		}
		var lost []change.RunningSubjectRequest
		for _, r := range rows {
			if states[r.ID.String()] != RunOpen {
				lost = append(lost, change.RunningSubjectRequest{Request: r.ID, Organization: r.Organization})
			}
		}
		if len(lost) > 0 {
			o.dispatch.RunSubjectRequests(lost)
			result.SubjectRequests += len(lost)
		}
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}
