package worker

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"earshot/dispatch"
)

// schedulesEvery is how often a worker checks that its schedules exist. A check costs one call to
// Temporal for each schedule.
const schedulesEvery = time.Minute

// SweepAtStart starts one sweep as soon as Temporal answers, unless ctx ends first. It is for a
// process without a worker, which may also follow a killed one. The workers of other processes run
// the sweep.
func SweepAtStart(ctx context.Context, temporal *dispatch.Connection, log *slog.Logger) {
	began := time.Now()
	insist(ctx, temporal, log, "sweep at the start", func(ctx context.Context, c client.Client) error {
		return dispatch.SweepNow(ctx, c, began)
	})
}

// keepSchedules sets the schedules up, sweeps, and restores deleted schedules until ctx ends. The
// worker runs in the meantime, because an overloaded Temporal needs workers even more.
func (w *Worker) keepSchedules(ctx context.Context) {
	insist(ctx, w.temporal, w.options.Log, "set up the schedules", w.begin)
	for wait(ctx, w.options.SchedulesEvery) {
		withTemporal(ctx, w.temporal, w.options.Log, "look after the schedules", w.restore)
	}
}

// begin runs once per worker. It sweeps because the worker may follow a process that was killed.
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

// insist retries until do succeeds or ctx ends.
func insist(
	ctx context.Context, temporal *dispatch.Connection, log *slog.Logger, what string, do func(context.Context, client.Client) error,
) {
	for pause := firstPause; !withTemporal(ctx, temporal, log, what, do); pause = min(2*pause, maxPause) {
		if !wait(ctx, pause) {
			return
		}
	}
}

// withTemporal calls do with the timeout of one try and reports whether it succeeded.
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
