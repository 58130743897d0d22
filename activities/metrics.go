package activities

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/sdk/activity"

	"earshot/internal/delivery"
	"earshot/internal/telemetry"
)

// waits are the histogram bounds, in seconds, for durations from milliseconds to the length of the
// retry schedule.
var waits = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 5400}

// Counts are the metrics of the activities.
type Counts struct {
	attempts     metric.Int64Counter
	faults       metric.Int64Counter
	durations    metric.Float64Histogram
	firstDelays  metric.Float64Histogram
	deliverTimes metric.Float64Histogram
	deliveries   metric.Int64Counter
	putOff       metric.Int64Counter
	sweeps       metric.Int64Counter
	swept        metric.Int64Counter
	removed      metric.Int64Counter
	emails       metric.Int64Counter
	disabled     metric.Int64Counter
}

// NewCounts registers the metrics.
func NewCounts(m telemetry.Meter) *Counts {
	return &Counts{
		attempts: m.Counter("earshot_attempts", "Attempts that were made."),
		faults: m.Counter("earshot_attempt_faults", "Attempts that weren't made or recorded for a reason of our own.",
			telemetry.Labels()),
		durations: m.Histogram("earshot_attempt_duration", "Requests to receivers.", telemetry.Seconds),
		firstDelays: m.Histogram("earshot_first_attempt_delay",
			"From the creation of a delivery, just before its commit, to its first attempt.", waits),
		deliverTimes: m.Histogram("earshot_delivered_delay",
			"From the creation of a delivery, just before its commit, to the receiver's 2xx.", waits),
		deliveries: m.Counter("earshot_deliveries", "Deliveries that ended.", telemetry.Labels("outcome", "succeeded", "error", "")),
		putOff:     m.Counter("earshot_put_off", "Attempts that were put off."),
		sweeps:     m.Counter("earshot_sweeps", "Parts of sweeps.", sweepLabels()...),
		swept:      m.Counter("earshot_swept", "Findings that the sweep started again or ended."),
		removed:    m.Counter("earshot_removed", "Rows that the retention removed."),
		emails: m.Counter("earshot_emails", "E-mails.", telemetry.Labels("result", "sent"),
			telemetry.Labels("result", "refused"), telemetry.Labels("result", "failed"), telemetry.Labels("result", "not_configured")),
		disabled: m.Counter("earshot_webhooks_disabled", "Webhooks that 50 failures in a row disabled.", telemetry.Labels()),
	}
}

// attempt counts an attempt by its result.
func (c *Counts) attempt(ctx context.Context, r delivery.Result) {
	result := "failed"
	switch {
	case r.Error == "":
		result = "succeeded"
	case r.Retry != nil:
		result = "retry"
	}
	c.attempts.Add(ctx, 1, telemetry.Labels("result", result, "error", r.Error, "task_queue", queueOf(ctx)))
	c.durations.Record(ctx, r.Duration.Seconds(), telemetry.Labels("result", result))
}

// claimed records the wait of a delivery for its first attempt. The label marks postponed
// deliveries, which waited for their receiver, or for the other receivers of their organization.
func (c *Counts) claimed(ctx context.Context, of delivery.Claimed) {
	if of.Attempt != 1 {
		return
	}
	putOff := "no"
	if of.PutOff {
		putOff = "yes"
	}
	c.firstDelays.Record(ctx, of.Age.Seconds(), telemetry.Labels("put_off", putOff))
}

// delivered counts a delivery that succeeded. The age is that at the claim; since is the time from
// the claim to the answer.
func (c *Counts) delivered(ctx context.Context, age, since time.Duration) {
	c.deliverTimes.Record(ctx, (age + since).Seconds())
	c.deliveries.Add(ctx, 1, telemetry.Labels("outcome", "succeeded", "error", ""))
}

// failed counts deliveries that failed for good. The label is the error of the last attempt, or the
// reason why the delivery ended without one.
func (c *Counts) failed(ctx context.Context, err string, n int) {
	if n > 0 {
		c.deliveries.Add(ctx, int64(n), telemetry.Labels("outcome", "failed", "error", err))
	}
}

// fault counts an attempt that failed because of our own fault.
func (c *Counts) fault(ctx context.Context) { c.faults.Add(ctx, 1, telemetry.Labels()) }

// delayed counts attempts that were postponed.
func (c *Counts) delayed(ctx context.Context, n int) {
	c.putOff.Add(ctx, int64(n), telemetry.Labels("task_queue", queueOf(ctx)))
}

// sweepLabels returns the labels of each part and result.
func sweepLabels() (all []metric.MeasurementOption) {
	for _, part := range SweepParts() {
		all = append(all, telemetry.Labels("part", part, "result", "done"), telemetry.Labels("part", part, "result", "failed"))
	}
	return all
}

// sweep counts the findings of a part of the sweep. Zero is counted too, because the presence of the
// counter shows that the sweep runs. A part is partial if some runs could not be looked up.
func (c *Counts) sweep(ctx context.Context, part string, r SweepResult, err error) {
	result := "done"
	if err != nil {
		result = "failed"
	} else if r.Unknown > 0 {
		result = "partial"
	}
	c.sweeps.Add(ctx, 1, telemetry.Labels("part", part, "result", result))
	c.found(ctx, "never_started", r.NeverStarted)
	c.found(ctx, "lost", r.Lost)
	if part != deliveriesPart {
		c.found(ctx, strings.ReplaceAll(part, " ", "_"), r.Restarted)
	}
	c.found(ctx, "given_up", r.GivenUp)
}

func (c *Counts) found(ctx context.Context, what string, n int) {
	c.swept.Add(ctx, int64(n), telemetry.Labels("found", what))
}

// remove counts the rows of one kind that the retention removed.
func (c *Counts) remove(ctx context.Context, kind string, n int) {
	c.removed.Add(ctx, int64(n), telemetry.Labels("kind", kind))
}

func (c *Counts) email(ctx context.Context, result string) {
	c.emails.Add(ctx, 1, telemetry.Labels("result", result))
}

func (c *Counts) disable(ctx context.Context) { c.disabled.Add(ctx, 1, telemetry.Labels()) }

func queueOf(ctx context.Context) string { return activity.GetInfo(ctx).TaskQueue }
