package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"earshot/internal/change"
	"earshot/internal/failpoint"
	"earshot/workflows"
)

const (
	// The maximum number of concurrent starts. When it is reached, further deliveries wait, and the next
	// start takes a group of them. An idle service therefore starts one workflow per delivery
	// without delay, and a busy service forms groups.
	startsAtOnce = 2
	// It is longer than an attempt's 10 s, so the first round fits into one workflow task even if a
	// receiver uses its whole time. It is also longer than the attempt's lease of 12 s. An attempt
	// that a kill interrupted is repeated when both have ended. That is within 5 s of the attempt's
	// own time, with 2 s to spare for a backlog.
	workflowTaskTimeout = 13 * time.Second
)

// Deliver queues deliveries for their start and does not block.
func (d *Dispatcher) Deliver(deliveries []change.PendingDelivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses("deliveries", len(deliveries)) {
		return
	}
	now, full := time.Now(), 0
	for _, one := range deliveries {
		if !d.deliveries.Add(one, d.lags(one.Webhook), now) {
			full++
		}
	}
	if full > 0 {
		d.log.Warn("too many deliveries wait for their start; the sweep will start these", "deliveries", full)
	}
	d.startMore()
}

// startMore starts waiting deliveries in the background unless startsAtOnce is reached. The caller
// holds the lock.
func (d *Dispatcher) startMore() {
	if d.starting < startsAtOnce && d.deliveries.Size() > 0 {
		d.starting++
		go d.startGroups()
	}
}

// startGroups starts one group after another until none is due.
func (d *Dispatcher) startGroups() {
	for {
		group := d.nextGroup()
		if group == nil {
			return
		}
		if !d.start(group) {
			d.pause(startPause)
			d.Deliver(group)
		}
	}
}

// nextGroup takes a group from the queue. If none is due, it counts the caller as finished and sets
// a timer for the next due group.
func (d *Dispatcher) nextGroup() []change.PendingDelivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	group, wait := d.deliveries.Take(d.groupMax, now)
	if group == nil {
		d.starting--
		d.idle.Broadcast()
	}
	if due := now.Add(wait); wait > 0 && (d.wakeAt.IsZero() || due.Before(d.wakeAt)) {
		d.wakeAt = due
		time.AfterFunc(wait, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.wakeAt = time.Time{}
			d.startMore()
		})
	}
	return group
}

// groupID returns the workflow id of a group. It is the first delivery's id, followed in a larger
// group by the number of further deliveries.
func groupID(group []change.PendingDelivery) string {
	if len(group) == 1 {
		return group[0].ID.String()
	}
	return fmt.Sprintf("%s+%d", group[0].ID, len(group)-1)
}

// start starts the group's workflow. It returns false if the caller has to try again. It returns
// true if the workflow runs, or if Temporal refused it, which leaves the group to the sweep.
func (d *Dispatcher) start(group []change.PendingDelivery) bool {
	ctx, cancel := context.WithTimeout(d.life, startTimeout)
	defer cancel()
	refs := make([]workflows.DeliveryRef, len(group))
	for i, one := range group {
		refs[i] = workflows.DeliveryRef{ID: one.ID, Webhook: one.Webhook}
	}
	c, err := d.temporal.Client(ctx)
	if err != nil {
		d.log.Warn("Temporal is away; deliveries wait", "error", err)
		return false
	}
	failpoint.Hit(failpoint.BeforeStart)
	ctx, span := d.span(ctx, group)
	defer span.End()
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        groupID(group),
		TaskQueue: workflows.MainQueue,
		// An open run continues with its deliveries. A closed run may be followed by another,
		// because the rows determine the remaining work.
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowTaskTimeout:                      workflowTaskTimeout,
		// Most processes also run the worker. An eager start then returns the first workflow task
		// with its answer.
		EnableEagerStart:      d.eager,
		TypedSearchAttributes: attributesOf(group),
		Priority:              fairnessOf(group),
		StaticSummary:         summaryOf(group),
	}, workflows.DeliverWebhooksName, workflows.NewDeliverParams(refs))
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &already) {
		failpoint.Hit(failpoint.AfterStart)
		if err == nil {
			d.sizes.Record(ctx, int64(len(group)))
		}
		return true
	}
	// The caller gets no error, because its change is committed. The sweep starts deliveries that
	// stay pending.
	again := unreachable(err)
	d.log.Warn("start deliveries", "deliveries", len(group), "first", group[0].ID, "error", err, "again", again)
	return !again
}
