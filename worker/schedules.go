package worker

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"earshot/dispatch"
)

// schedulesEvery is how often a worker looks whether its schedules are there. A
// look costs Temporal one call for each.
const schedulesEvery = time.Minute

// SweepAtStart sweeps once, as soon as Temporal answers or until ctx ends: for a
// process without a worker, which too may follow one that was killed. The workers of
// other processes do the work.
func SweepAtStart(ctx context.Context, temporal *dispatch.Connection, log *slog.Logger) {
	began := time.Now()
	insist(ctx, temporal, log, "sweep at the start", func(ctx context.Context, c client.Client) error {
		return dispatch.SweepNow(ctx, c, began)
	})
}

// keepSchedules sets the schedules up, sweeps, and makes schedules again that
// somebody deletes, until ctx ends. The worker runs meanwhile: a Temporal that is
// too busy for this needs it all the more.
func (w *Worker) keepSchedules(ctx context.Context) {
	insist(ctx, w.temporal, w.options.Log, "set up the schedules", w.begin)
	for wait(ctx, w.options.SchedulesEvery) {
		withTemporal(ctx, w.temporal, w.options.Log, "look after the schedules", w.restore)
	}
}

// begin is what a worker does once: it sweeps because it may follow a process that
// was killed.
func (w *Worker) begin(ctx context.Context, c client.Client) error {
	if err := dispatch.SweepNow(ctx, c, w.started); err != nil {
		return err
	}
	return dispatch.EnsureSchedules(ctx, c)
}

func (w *Worker) restore(ctx context.Context, c client.Client) error {
	restored, err := dispatch.RestoreSchedules(ctx, c)
	if len(restored) > 0 {
		w.options.Log.WarnContext(ctx, "schedules that were deleted are back", "schedules", restored)
	}
	return err
}

// insist tries until do succeeds or ctx ends.
func insist(
	ctx context.Context, temporal *dispatch.Connection, log *slog.Logger, what string, do func(context.Context, client.Client) error,
) {
	for pause := firstPause; !withTemporal(ctx, temporal, log, what, do); pause = min(2*pause, maxPause) {
		if !wait(ctx, pause) {
			return
		}
	}
}

// withTemporal reports whether do succeeded, within the time of one try.
func withTemporal(
	ctx context.Context, temporal *dispatch.Connection, log *slog.Logger, what string, do func(context.Context, client.Client) error,
) bool {
	limited, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	c, err := temporal.Client(limited)
	if err == nil {
		err = do(limited, c)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "Temporal is away or too busy", "for", what, "error", err)
	}
	return err == nil
}

// wait reports false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
