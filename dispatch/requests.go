package dispatch

import (
	"context"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/jobs"
	"earshot/internal/publicid"
	"earshot/workflows"
)

// maxRequests is the maximum number of runs that wait for a start or a signal. The sweep starts further
// runs.
const maxRequests = 100_000

// Queue queues requests and does not block. One goroutine sends them one after another. Each is repeated
// until Temporal accepts or refuses it. The sweep sends the requests that a stopped process leaves behind.
func (d *Dispatcher) Queue(requests []jobs.Request) {
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
		if !d.try(next) {
			d.pause(startPause)
			d.Queue([]jobs.Request{next})
		}
	}
}

// try returns false if the caller has to try again.
func (d *Dispatcher) try(r jobs.Request) bool {
	ctx, cancel := context.WithTimeout(d.life, startTimeout)
	defer cancel()
	c, err := d.temporal.Client(ctx)
	if err != nil {
		d.log.Warn("Temporal is away; runs wait for their start", "error", err)
		return false
	}
	if err = send(ctx, c, r); err == nil {
		return true
	}
	again := unreachable(err)
	d.log.Warn("start or signal a run", "workflow", r.Workflow, "id", r.ID, "error", err, "again", again)
	return !again
}

// Do sends a request at once, for an activity that Temporal repeats after an error.
func (d *Dispatcher) Do(ctx context.Context, r jobs.Request) error {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return err
	}
	return send(ctx, c, r)
}

func send(ctx context.Context, c client.Client, r jobs.Request) error {
	argument := map[string]string{r.Argument: r.ID}
	switch r.How {
	case jobs.Start:
		if _, err := c.ExecuteWorkflow(ctx, optionsOf(r), r.Workflow, argument); err != nil {
			return errors.Wrap(err, "start "+r.Workflow)
		}
		return nil
	case jobs.Wake:
		if _, err := c.SignalWithStartWorkflow(ctx, r.ID, r.Signal, nil, optionsOf(r), r.Workflow, argument); err != nil {
			return errors.Wrap(err, "start or signal "+r.Workflow)
		}
		return nil
	case jobs.Tell:
		err := c.SignalWorkflow(ctx, r.ID, "", r.Signal, nil)
		var none *serviceerror.NotFound
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "signal "+r.Workflow)
		}
		return nil
	}
	return errors.Errorf("the request for %s has an unknown kind: %d", r.Workflow, r.How)
}

func optionsOf(r jobs.Request) client.StartWorkflowOptions {
	o := client.StartWorkflowOptions{
		ID:                    r.ID,
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         r.Summary,
	}
	var attributes []temporal.SearchAttributeUpdate
	if r.Organization != (publicid.Organization{}) {
		attributes = append(attributes, workflows.OrganizationIDs.ValueSet([]string{r.Organization.String()}))
		o.Priority = fairTo(r.Organization)
	}
	if r.Webhook != (publicid.Webhook{}) {
		attributes = append(attributes, workflows.WebhookIDs.ValueSet([]string{r.Webhook.String()}))
	}
	o.TypedSearchAttributes = temporal.NewSearchAttributes(attributes...)
	return o
}
