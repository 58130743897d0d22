package activities

import (
	"context"
	"time"

	"earshot/internal/store"
)

// claim claims a delivery for an attempt, with a token where its webhook has a throttle: then the
// claim is made once more, because only the row says so. It waits for a token that will be
// there in a moment. Who gets none isn't granted the attempt: Delay says when its turn is.
func (d *Deliveries) claim(ctx, waiting context.Context, r round, due Due) (store.Claimed, error) {
	claim := store.Claim{
		ID: due.ID, Number: due.Attempt, WorkflowID: r.run.ID, RunID: r.run.RunID, Lease: d.sender.Timeout() + leaseMargin,
	}
	claimed, err := d.claims.Do(ctx, claim)
	if err != nil || !claimed.Throttled {
		return claimed, err
	}
	token, err := d.tokens.Do(ctx, store.WebhookTokenAsk{
		Webhook: due.Webhook, Delivery: due.ID, Number: due.Attempt, WorkflowID: r.run.ID, RunID: r.run.RunID, Later: !r.first,
	})
	switch {
	case err != nil:
		return store.Claimed{}, err
	case token.Crowded:
		return store.Claimed{Throttled: true, Delay: d.limits.BehindReserved()}, nil
	case !token.Granted:
		return store.Claimed{Throttled: true, Delay: token.Wait, Noted: token.Noted}, nil
	}
	select {
	case <-waiting.Done():
		// The worker stops. The token is given up, and the delivery asks again after the same wait.
		return store.Claimed{Throttled: true, Delay: token.Wait}, nil
	case <-time.After(token.Wait):
	}
	claim.Token = true
	return d.claims.Do(ctx, claim)
}

// takeTokens asks for what attempts may wait for, and for turns within what is reserved.
func (d *Deliveries) takeTokens(ctx context.Context, asks []store.WebhookTokenAsk) ([]store.WebhookToken, error) {
	within, ahead := d.limits.ThrottleReach()
	return d.store.TakeWebhookTokens(ctx, within, ahead, asks)
}
