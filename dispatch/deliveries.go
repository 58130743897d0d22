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
	// Starts under way at once. While all are, further deliveries wait and the next
	// start takes up to a group of them: an idle service starts one workflow for each
	// delivery at once, a busy one forms groups by itself.
	startsAtOnce = 2
	// Above an attempt's 10 s, so that a first round fits into one workflow
	// task even when a receiver uses its whole time, and above the lease of one,
	// which ends after 12 s: what a kill cut off is made again when both are over,
	// so within 5 s of the attempt's own time, with 2 s to spare for a backlog.
	workflowTaskTimeout = 13 * time.Second
)

// Deliver queues deliveries for their start and returns at once.
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

// startMore begins to start what waits, unless as many starts are under way as may be. Its
// caller holds the lock.
func (d *Dispatcher) startMore() {
	if d.starting < startsAtOnce && d.deliveries.Size() > 0 {
		d.starting++
		go d.startGroups()
	}
}

// startGroups starts one group after the other until none is due.
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

// nextGroup takes a group from the queue. When none is due it ends its caller's turn, and
// has the queue looked at again when one is.
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

// groupID is the delivery's own id for a group of one; a larger group adds how
// many more there are.
func groupID(group []change.PendingDelivery) string {
	if len(group) == 1 {
		return group[0].ID.String()
	}
	return fmt.Sprintf("%s+%d", group[0].ID, len(group)-1)
}

// start reports whether the group is done with: its workflow runs, or Temporal answered
// that it can't, which leaves it to the sweep.
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
		// A run that is open looks after its deliveries; a closed one may be
		// started again, because the rows decide what is still to be done.
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowTaskTimeout:                      workflowTaskTimeout,
		// This process has the worker too, most of the time: then the first
		// workflow task comes back with the answer to the start.
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
	// Never told to the caller, whose change is committed: the sweep starts what
	// stays pending.
	again := unreachable(err)
	d.log.Warn("start deliveries", "deliveries", len(group), "first", group[0].ID, "error", err, "again", again)
	return !again
}
