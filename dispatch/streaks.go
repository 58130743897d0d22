package dispatch

import (
	"context"
	"fmt"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/workflows"
)

// StreakGrew starts the run that follows a webhook's streak, or tells the one that
// does.
func (d *Dispatcher) StreakGrew(ctx context.Context, webhook publicid.Webhook) error {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return err
	}
	_, err = c.SignalWithStartWorkflow(ctx, webhook.String(), workflows.StreakSignal, nil, client.StartWorkflowOptions{
		TaskQueue:             workflows.MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.WebhookIDs.ValueSet([]string{webhook.String()})),
		StaticSummary:         "counts a webhook's failures in a row",
	}, workflows.FailureStreakName, activities.StreakParams{Webhook: webhook})
	if err != nil {
		return errors.Wrap(err, "signal the streak's workflow")
	}
	return nil
}

// StreakEnded tells the run that follows a webhook's streak, if there is one.
func (d *Dispatcher) StreakEnded(ctx context.Context, webhook publicid.Webhook) error {
	c, err := d.temporal.Client(ctx)
	if err != nil {
		return err
	}
	return endStreak(ctx, c, webhook)
}

func endStreak(ctx context.Context, c client.Client, webhook publicid.Webhook) error {
	err := c.SignalWorkflow(ctx, webhook.String(), "", workflows.StreakSignal, nil)
	var none *serviceerror.NotFound
	if err != nil && !errors.As(err, &none) {
		return errors.Wrap(err, "signal the streak's workflow")
	}
	return nil
}

// EndFailureStreaks queues a signal to each of the runs that follow the webhooks' streaks
// and returns at once.
func (d *Dispatcher) EndFailureStreaks(webhooks []publicid.Webhook) {
	enqueueEach(d, "tell that a webhook's streak is over", webhooks, func(one publicid.Webhook) fmt.Stringer { return one }, endStreak)
}
