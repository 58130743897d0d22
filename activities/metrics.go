package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"earshot/internal/store"
)

// Our own metrics. They go the way of the SDK's, which adds the namespace and the
// queue to their labels, and nowhere when nobody asked for metrics. A label never
// holds an id: there would be no end of them.
const (
	attemptsMetric = "earshot_attempts"
	putOffMetric   = "earshot_put_off"
	sweptMetric    = "earshot_swept"
	removedMetric  = "earshot_removed"
)

// countAttempt counts an attempt by what became of it.
func countAttempt(ctx context.Context, r store.Result) {
	result := "failed"
	switch {
	case r.Error == "":
		result = "succeeded"
	case r.Retry != nil:
		result = "retry"
	}
	count(ctx, attemptsMetric, "result", result, 1)
}

// countPutOff counts attempts that found no slot or no memory.
func countPutOff(ctx context.Context, n int) {
	activity.GetMetricsHandler(ctx).Counter(putOffMetric).Inc(int64(n))
}

// countSwept counts what the sweep found. Nothing counts too: a counter that is
// there says that the sweep runs.
func countSwept(ctx context.Context, r SweepResult) {
	count(ctx, sweptMetric, "found", "never_started", r.NeverStarted)
	count(ctx, sweptMetric, "found", "lost", r.Lost)
	count(ctx, sweptMetric, "found", "entries", r.Entries)
	count(ctx, sweptMetric, "found", "recoveries", r.Recoveries)
	count(ctx, sweptMetric, "found", "streaks", r.Streaks)
	countGivenUp(ctx, r.GivenUp)
}

// countGivenUp counts deliveries whose run was terminated.
func countGivenUp(ctx context.Context, n int) {
	count(ctx, sweptMetric, "found", "given_up", n)
}

// countRemoved counts what the retention removed, of one kind.
func countRemoved(ctx context.Context, kind string, n int) {
	count(ctx, removedMetric, "kind", kind, n)
}

func count(ctx context.Context, metric, label, value string, n int) {
	activity.GetMetricsHandler(ctx).WithTags(map[string]string{label: value}).Counter(metric).Inc(int64(n))
}
