package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// sweepRuns walks through rows that have a run each, all of them, page by page, and calls missing
// for those whose run isn't open. Next is the page behind a row; the zero one begins.
func sweepRuns[T any](
	ctx context.Context, next func(last T) ([]T, error), id func(T) string,
	ask func(context.Context, []string) (map[string]RunState, error), missing func(T, RunState) error,
) error {
	var last T
	for {
		rows, err := next(last)
		if err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = id(r)
		}
		states, err := runStates(ctx, ask, ids)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if state := states[id(r)]; state != RunOpen {
				if err := missing(r, state); err != nil {
					return err
				}
			}
		}
		activity.RecordHeartbeat(ctx)
		if len(rows) < sweepPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}

// sweepRecoveries starts every recovery again that should run and doesn't. One whose
// run an operator terminated is stopped instead.
func (o *Outbox) sweepRecoveries(ctx context.Context, p SweepParams, result *SweepResult) error {
	return sweepRuns(ctx, func(last store.RunningRecovery) ([]store.RunningRecovery, error) {
		return o.store.RunningRecoveries(ctx, p.grace(), last, sweepPage)
	}, func(r store.RunningRecovery) string { return r.ID.String() },
		o.runs.RunStatesForSure, // there are few
		func(r store.RunningRecovery, state RunState) error {
			if state == RunTerminated {
				return o.store.CancelRecovery(ctx, r.ID)
			}
			o.dispatch.RunRecoveries([]change.RunningRecovery{{Recovery: r.ID, Webhook: r.Webhook, Organization: r.Organization}})
			result.Recoveries++
			return nil
		})
}

// sweepSubjectRequests starts every export and erasure again that should run and doesn't, also one
// whose run an operator terminated: what a person is owed doesn't end so.
func (o *Outbox) sweepSubjectRequests(ctx context.Context, p SweepParams, result *SweepResult) error {
	return sweepRuns(ctx, func(last store.RunningSubjectRequest) ([]store.RunningSubjectRequest, error) {
		return o.store.RunningSubjectRequests(ctx, p.grace(), last, sweepPage)
	}, func(r store.RunningSubjectRequest) string { return r.ID.String() },
		o.runs.RunStatesForSure, // there are few
		func(r store.RunningSubjectRequest, _ RunState) error {
			o.dispatch.RunSubjectRequests([]change.RunningSubjectRequest{{Request: r.ID, Organization: r.Organization}})
			result.SubjectRequests++
			return nil
		})
}

// sweepBackfills is sweepRecoveries for searches for contacts in old activity.
func (o *Outbox) sweepBackfills(ctx context.Context, p SweepParams, result *SweepResult) error {
	return sweepRuns(ctx, func(last store.RunningBackfill) ([]store.RunningBackfill, error) {
		return o.store.RunningBackfills(ctx, p.grace(), last, sweepPage)
	}, func(r store.RunningBackfill) string { return r.ID.String() },
		o.runs.RunStatesForSure, // there are few
		func(r store.RunningBackfill, state RunState) error {
			if state == RunTerminated {
				return o.store.CancelBackfill(ctx, r.ID)
			}
			o.dispatch.RunBackfills([]change.RunningBackfill{{Backfill: r.ID, Organization: r.Organization}})
			result.Backfills++
			return nil
		})
}

// sweepInteractions starts the runs of interactions again that nobody looks after. A run that is
// open, such as one whose mail server is away, is left alone: there may be many, and one behind them
// may have lost its start.
func (o *Outbox) sweepInteractions(ctx context.Context, p SweepParams, result *SweepResult) error {
	return sweepRuns(ctx, func(last store.OverdueInteraction) ([]store.OverdueInteraction, error) {
		return o.store.OverdueInteractions(ctx, p.grace(), last, sweepPage)
	}, func(i store.OverdueInteraction) string { return i.ID.String() },
		o.runs.RunStates,
		func(i store.OverdueInteraction, _ RunState) error {
			o.dispatch.ConfirmInteractions([]change.PendingInteraction{{Interaction: i.ID, Organization: i.Organization}})
			result.Interactions++
			return nil
		})
}

// sweepSubscribers starts the runs again of organizations that have something to tell their end-users.
// One that waits for the end of a window, or for a mail server, is left alone.
func (o *Outbox) sweepSubscribers(ctx context.Context, p SweepParams, result *SweepResult) error {
	return sweepRuns(ctx, func(last publicid.Organization) ([]publicid.Organization, error) {
		return o.store.OverdueSubscribers(ctx, p.grace(), last, sweepPage)
	}, func(of publicid.Organization) string { return of.String() },
		o.runs.RunStatesForSure, // there are few
		func(of publicid.Organization, _ RunState) error {
			o.dispatch.NotifySubscribers([]publicid.Organization{of})
			result.Subscribers++
			return nil
		})
}
