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

// maxRequests is the maximum number of runs that wait for a start or a signal. The sweep starts further
// runs.
const maxRequests = 100_000

// request starts or signals one run that delivers no events. It is repeated until Temporal accepts or
// refuses it. The sweep starts the runs that a stopped process leaves behind.
type request struct {
	// The kind and the id of the row, for the log.
	what string
	id   fmt.Stringer
	send func(ctx context.Context, c client.Client) error
}

// enqueueEach enqueues one request for each element.
func enqueueEach[T any](
	d *Dispatcher, what string, some []T, id func(T) fmt.Stringer, send func(context.Context, client.Client, T) error,
) {
	requests := make([]request, len(some))
	for i, one := range some {
		requests[i] = request{what, id(one), func(ctx context.Context, c client.Client) error { return send(ctx, c, one) }}
	}
	d.enqueue(requests)
}

// enqueue queues requests and does not block. One goroutine sends them one after another.
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

// send returns false if the caller has to try again.
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

// startRun starts the run that does a row's work, with the row's id as the workflow id. It leaves an
// open run alone. A closed run is followed by another, because the row determines the remaining
// work.
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
