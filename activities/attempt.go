package activities

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"earshot/internal/delivery"
	"earshot/internal/failpoint"
	"earshot/internal/send"
	"earshot/internal/telemetry"
	"earshot/internal/webhooks"
)

// attempt runs one attempt from start to end: a slot and memory, the claim, the request, the
// record. The process may die after any line. The lease then keeps other workers off until the
// attempt must be over, and the delivery is claimed again.
func (d *Deliveries) attempt(ctx, waiting context.Context, r round, due Due) (outcome, error) {
	release, o, err := d.admit(ctx, waiting, due, r.wait(due.Webhook))
	if release == nil {
		return o, err
	}
	// The slot and the memory are for the request. The record needs neither.
	defer release()
	claimed, err := d.claim(ctx, waiting, r, due)
	switch {
	case err != nil:
		return outcome{}, err
	case claimed.Throttled:
		return outcome{putOff: true, throttled: true, noted: claimed.Noted, atLeast: claimed.Delay, at: time.Now()}, nil
	case claimed.Gone:
		return gone(claimed.Ended), nil
	case claimed.Wait:
		o = again(due, claimed.Attempt, claimed.Delay)
		if d.options.CountAttempts && claimed.Attempt > due.Attempt {
			// The attempt was already made and failed, perhaps in a worker that was killed before
			// it could report the streak.
			o.streak = streakGrew
		}
		return o, nil
	case !claimed.Enabled:
		_, err := d.record(ctx, delivery.Result{ID: due.ID, Error: ErrorWebhookDisabled, Lease: claimed.Lease})
		if err == nil {
			d.counts.failed(ctx, ErrorWebhookDisabled, 1)
		}
		return outcome{failed: true, answer: ErrorWebhookDisabled}, err
	}
	began := time.Now()
	d.counts.claimed(ctx, claimed)
	failpoint.Hit(failpoint.AfterClaim)
	result, err := d.traced(ctx, due, claimed)
	release()
	if err != nil {
		return outcome{}, err
	}
	failpoint.Hit(failpoint.AfterSend)
	o = outcome{at: time.Now(), answer: answerOf(result.Response, result.Error), failed: result.Error != "" && result.Retry == nil}
	moved, err := d.record(ctx, result)
	if err != nil {
		return outcome{}, err
	}
	failpoint.Hit(failpoint.AfterRecord)
	switch {
	case result.Error == "":
		d.counts.delivered(ctx, claimed.Age, o.at.Sub(began))
	case o.failed:
		d.counts.failed(ctx, result.Error, 1)
	}
	if moved {
		o.streak = moveOf(result.Error != "")
	}
	if result.Retry != nil {
		o.pending, o.next = true, Pending{Due: due, In: *result.Retry}
		o.next.Attempt++
	}
	return o, nil
}

// admit waits for a slot of the webhook, and then for memory for the payload. If it gets neither,
// release is nil and the outcome holds the reason.
func (d *Deliveries) admit(ctx, waiting context.Context, due Due, wait time.Duration) (release func(), _ outcome, _ error) {
	waiting, cancel := context.WithTimeout(waiting, wait)
	defer cancel()
	freeSlot := d.limits.Acquire(waiting, due.Webhook)
	if freeSlot == nil {
		return nil, outcome{putOff: true}, nil
	}
	size, err := d.sizes.Do(ctx, due.ID)
	if err != nil {
		freeSlot()
		return nil, outcome{}, err
	}
	freeMemory := d.memory.Acquire(waiting, size.Organization, size.Bytes)
	if freeMemory == nil {
		freeSlot()
		return nil, outcome{putOff: true, atLeast: d.memory.Wait()}, nil
	}
	return sync.OnceFunc(func() { freeMemory(); freeSlot() }), outcome{}, nil
}

// traced calls request within a span. The request carries the span's trace context to the receiver.
func (d *Deliveries) traced(ctx context.Context, due Due, c delivery.Claimed) (delivery.Result, error) {
	ctx, span := telemetry.Span(ctx, "attempt", attribute.String("earshot.delivery", due.ID.String()),
		attribute.String("earshot.webhook", c.Webhook.String()), attribute.String("earshot.event_type", c.EventType),
		attribute.Int("earshot.attempt", due.Attempt))
	defer span.End()
	r, err := d.request(ctx, due, c)
	if r.Response != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", r.Response))
	}
	if r.Error != "" {
		span.SetAttributes(attribute.String("error.type", r.Error))
	}
	if err != nil || r.Error != "" {
		span.SetStatus(codes.Error, r.Error)
	}
	return r, err
}

// request sends the attempt and derives the result from the answer.
func (d *Deliveries) request(ctx context.Context, due Due, c delivery.Claimed) (delivery.Result, error) {
	secret, err := d.secrets.Open(c.Webhook.String(), c.Sealed)
	if err != nil {
		return delivery.Result{}, errors.Wrap(err, "open the webhook's secret")
	}
	former := ""
	if c.SealedFormer != nil {
		// The request then carries only the signature with the new secret, which is the one that
		// counts.
		if former, err = d.secrets.Open(c.Webhook.String(), c.SealedFormer); err != nil {
			d.log.WarnContext(ctx, "a secret that is being replaced can't be opened, so attempts are signed with the new one alone",
				"webhookId", c.Webhook.String(), "error", err)
		}
	}
	url, err := webhooks.WebhookURL(d.secrets, c.Webhook, c.URL, c.SealedURL)
	if err != nil {
		return delivery.Result{}, errors.Wrap(err, "open the webhook's URL")
	}
	failpoint.Hit(failpoint.BeforeSend)
	o := d.sender.Send(ctx, send.Request{
		URL: url, Secret: secret, Former: former, EventType: c.EventType, DeliveryID: due.ID.String(), Body: c.Payload,
		Sequence:    c.Sequence,
		TraceParent: telemetry.TraceParent(ctx),
	})
	if ctx.Err() != nil && !o.OK() {
		// The shutdown of this process cut the attempt off, which is not the receiver's fault.
		return delivery.Result{}, ctx.Err()
	}
	d.limits.Answered(due.Webhook, o.OK(), o.Duration)
	r := delivery.Result{
		ID: due.ID, Number: due.Attempt, StartedAt: o.StartedAt, Duration: o.Duration,
		Response: o.Status, Body: o.Body, Error: string(o.Error), Lease: c.Lease,
	}
	if n := due.Attempt - c.ScheduleStart; !o.OK() && n <= len(d.options.Delays) {
		delay := d.options.Delays[n-1]
		delay += d.limits.ReserveRetry(due.Webhook, due.Attempt+1, delay)
		r.Retry = &delay
	}
	r.Counts = !o.OK() && (d.options.CountAttempts || r.Retry == nil)
	d.counts.attempt(ctx, r)
	d.log.LogAttrs(ctx, slog.LevelInfo, "attempt",
		slog.String("deliveryId", due.ID.String()), slog.String("webhookId", c.Webhook.String()),
		slog.String("eventType", c.EventType), slog.Int("attempt", due.Attempt),
		slog.Int("responseStatus", o.Status), slog.String("error", string(o.Error)),
		slog.Duration("duration", o.Duration), slog.Bool("retry", r.Retry != nil))
	return r, nil
}

// record retries while the activity has time: an attempt without a recorded result is made again,
// and the receiver sees a duplicate. It reports whether the webhook's streak moved.
func (d *Deliveries) record(ctx context.Context, r delivery.Result) (moved bool, err error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		moved, err := d.results.Do(ctx, r)
		if err == nil {
			return moved, nil
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(pause):
			d.log.WarnContext(ctx, "record an attempt again", "deliveryId", r.ID, "error", err)
		}
	}
}
