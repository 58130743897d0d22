package dispatch

import (
	"context"
	"fmt"

	"earshot/internal/publicid"
	"earshot/workflows"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Runs that may wait for a start or a signal; beyond, the sweep finds them.
const maxRequests = 100_000

// request starts or signals one run that isn't a delivery's. It is sent until
// Temporal takes it or says no; what a process leaves undone is the sweep's.
type request struct {
	// what it is about, and its id, for the log.
	what string
	id   fmt.Stringer
	send func(ctx context.Context, c client.Client) error
}

// enqueueEach has a request sent for each of some, as enqueue does.
func enqueueEach[T any](
	d *Dispatcher, what string, some []T, id func(T) fmt.Stringer, send func(context.Context, client.Client, T) error,
) {
	requests := make([]request, len(some))
	for i, one := range some {
		requests[i] = request{what, id(one), func(ctx context.Context, c client.Client) error { return send(ctx, c, one) }}
	}
	d.enqueue(requests)
}

// enqueue has requests sent one after the other and returns at once.
func (d *Dispatcher) enqueue(requests []request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses("others", len(requests)) {
		return
	}
	if len(d.requests)+len(requests) > maxRequests {
		d.log.Warn("too many runs wait for their start; the sweep will start these", "runs", len(requests))
		return
	}
	if d.requests = append(d.requests, requests...); !d.sending && len(d.requests) > 0 {
		d.sending = true
		go d.sendAll()
	}
}

func (d *Dispatcher) sendAll() {
	for {
		d.mu.Lock()
		if len(d.requests) == 0 {
			d.sending = false
			d.idle.Broadcast()
			d.mu.Unlock()
			return
		}
		next := d.requests[0]
		d.requests = d.requests[1:]
		d.mu.Unlock()
		if !d.send(next) {
			d.pause(startPause)
			d.enqueue([]request{next})
		}
	}
}

// send reports whether the request is done with.
func (d *Dispatcher) send(r request) bool {
	ctx, cancel := context.WithTimeout(d.life, startTimeout)
	defer cancel()
	c, err := d.temporal.Client(ctx)
	if err != nil {
		d.log.Warn("Temporal is away; runs wait for their start", "error", err)
		return false
	}
	if err = r.send(ctx, c); err == nil {
		return true
	}
	again := unreachable(err)
	d.log.Warn("start a run", "what", r.what, "id", r.id, "error", err, "again", again)
	return !again
}

// startRun starts the run that does what a row wants, under the row's id. One that is open is left alone;
// a closed one is followed by another, because the row decides what is still to be done.
func startRun(
	ctx context.Context, c client.Client, row fmt.Stringer, of publicid.Organization, summary, workflow string, params any,
	more ...temporal.SearchAttributeUpdate,
) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    row.String(),
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(append(more, workflows.OrganizationIDs.ValueSet([]string{of.String()}))...),
		Priority:              fairTo(of),
		StaticSummary:         summary,
	}, workflow, params)
	return err
}
