package dispatch

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/workflows"
)

// RunRecoveries queues recoveries for their start and returns at once.
func (d *Dispatcher) RunRecoveries(recoveries []change.RunningRecovery) {
	enqueueEach(d, "recovery", recoveries, func(one change.RunningRecovery) fmt.Stringer { return one.Recovery }, startRecovery)
}

func startRecovery(ctx context.Context, c client.Client, r change.RunningRecovery) error {
	return startRun(ctx, c, r.Recovery, r.Organization, "replays what failed at a webhook",
		workflows.RecoverWebhookName, activities.RecoverParams{Recovery: r.Recovery},
		workflows.WebhookIDs.ValueSet([]string{r.Webhook.String()}))
}
