package worker

import (
	"context"
	"time"

	"earshot/workflows"
)

// schedulesEvery is how often a worker looks whether its schedules are there. A
// look costs Temporal one call for each.
const schedulesEvery = time.Minute

// keepSchedules makes schedules again that somebody deleted, until ctx ends.
func (w *Worker) keepSchedules(ctx context.Context) {
	tick := time.NewTicker(w.options.SchedulesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.restoreSchedules(ctx)
		}
	}
}

func (w *Worker) restoreSchedules(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	c, err := w.temporal.Client(ctx)
	if err == nil {
		var restored []string
		if restored, err = workflows.RestoreSchedules(ctx, c); len(restored) > 0 {
			w.options.Log.WarnContext(ctx, "schedules that were deleted are back", "schedules", restored)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.options.Log.WarnContext(ctx, "look after the schedules", "error", err)
	}
}
