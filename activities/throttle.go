package activities

import (
	"context"
	"time"

	"earshot/internal/delivery"
)

// claim claims a delivery for an attempt. The first try finds out if the webhook has a throttle,
// which only the row records. In that case claim takes a token and claims again. It waits for a
// token that is available soon. Without a token the attempt isn't granted, and Delay is the time
// until its turn.
func (d *Deliveries) claim(ctx, waiting context.Context, r round, due Due) (delivery.Claimed, error) {
	claim := delivery.Claim{
		ID: due.ID, Number: due.Attempt, WorkflowID: r.run.ID, RunID: r.run.RunID, Lease: d.sender.Timeout() + leaseMargin,
	}
	claimed, err := d.claims.Do(ctx, claim)
	if err != nil || !claimed.Throttled {
		return claimed, err
	}
	token, err := d.tokens.Do(ctx, delivery.WebhookTokenAsk{
		Webhook: due.Webhook, Delivery: due.ID, Number: due.Attempt, WorkflowID: r.run.ID, RunID: r.run.RunID, Later: !r.first,
	})
	switch {
	case err != nil:
		return delivery.Claimed{}, err
	case token.Crowded:
		return delivery.Claimed{Throttled: true, Delay: d.limits.BehindReserved()}, nil
	case !token.Granted:
		return delivery.Claimed{Throttled: true, Delay: token.Wait, Noted: token.Noted}, nil
	}
	select {
	case <-waiting.Done():
		// The worker is stopping. The token is given up, and the delivery asks again after the same
		// wait.
		return delivery.Claimed{Throttled: true, Delay: token.Wait}, nil
	case <-time.After(token.Wait):
	}
	claim.Token = true
	return d.claims.Do(ctx, claim)
}

// takeTokens takes tokens that are available within an attempt's wait. For the other attempts it
// assigns turns within the reserved time.
func (d *Deliveries) takeTokens(ctx context.Context, asks []delivery.WebhookTokenAsk) ([]delivery.WebhookToken, error) {
	within, ahead := d.limits.ThrottleReach()
	return delivery.TakeWebhookTokens(ctx, d.store, within, ahead, asks)
}
