// Package activities holds the side effects of the workflows. Parameters and results are ids:
// payloads, secrets and URLs never enter a workflow's history.
package activities

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"earshot/internal/batch"
	"earshot/internal/delivery"
	"earshot/internal/delivery/fairness"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/telemetry"
)

// The wire names of the activities.
const (
	AttemptFirstName = "attempt_first"
	AttemptLaterName = "attempt_later"
	GiveUpName       = "give_up_deliveries"
	ReviveName       = "revive_deliveries"
)

const (
	// faultPause is the wait of a delivery after a fault of our own that the rest of its group
	// doesn't share.
	faultPause = 30 * time.Second
	// leaseMargin is added to the timeout of an attempt to get the length of its lease. It leaves
	// time for the record, which takes some milliseconds, and matters only if the worker has died.
	leaseMargin = 2 * time.Second
	// statementTimeout is longer than a statement takes on a healthy database. It is short enough
	// for the activity to report an unhealthy one.
	statementTimeout = 5 * time.Second
	// batchMax is the number of rows in one statement.
	batchMax = 256
)

// HeartbeatInterval is the time between two heartbeats of an attempt's activity: a third of its
// heartbeat timeout of 12 s. The worker sets it as the SDK's throttle, too. By default the SDK
// holds heartbeats back for 80 % of the timeout, and a stall of Temporal of only 2.4 s would end
// the activity. It is also the SDK's timeout for the answer to a heartbeat.
const HeartbeatInterval = 4 * time.Second

// Errors of deliveries that ended without an attempt.
const (
	// ErrorWebhookDisabled: the webhook was disabled.
	ErrorWebhookDisabled = "webhook_disabled"
	// ErrorGivenUp: an operator ended the delivery or its workflow.
	ErrorGivenUp = "given_up"
)

// DeliveryOptions are a deployment's settings for attempts.
type DeliveryOptions struct {
	// Delays are the pauses before attempts 2, 3, ….
	Delays []time.Duration
	// CountAttempts counts each failed attempt for the webhook's streak. Otherwise only deliveries
	// that failed for good count.
	CountAttempts bool
	// Counts are the metrics; nil counts nothing.
	Counts *Counts
	Log    *slog.Logger
}

// Deliveries makes attempts.
type Deliveries struct {
	store   *postgres.DB
	sender  *send.Sender
	secrets *seal.Box
	does    Doer
	options DeliveryOptions
	counts  *Counts
	log     *slog.Logger

	limits  *fairness.WebhookLimits
	later   *fairness.LaterLimits
	memory  *fairness.PayloadMemory
	sizes   batch.Batcher[publicid.Delivery, delivery.PayloadSize]
	claims  batch.Batcher[delivery.Claim, delivery.Claimed]
	tokens  batch.Batcher[delivery.WebhookTokenAsk, delivery.WebhookToken]
	results batch.Batcher[delivery.Result, bool]
}

// NewDeliveries makes the activities.
func NewDeliveries(s *postgres.DB, sender *send.Sender, secrets *seal.Box, does Doer, o DeliveryOptions) *Deliveries {
	if o.Counts == nil {
		o.Counts = NewCounts(telemetry.Meter{})
	}
	d := &Deliveries{
		store: s, sender: sender, secrets: secrets, does: does, options: o, counts: o.Counts, log: o.Log,
		limits: fairness.NewWebhookLimits(), later: fairness.NewLaterLimits(), memory: fairness.NewPayloadMemory(),
		sizes:   batch.New(batchMax, statementTimeout, on(s, delivery.PayloadSizes)),
		claims:  batch.New(batchMax, statementTimeout, on(s, delivery.ClaimAll)),
		results: batch.New(batchMax, statementTimeout, on(s, delivery.Record)),
	}
	d.tokens = batch.New(batchMax, statementTimeout, d.takeTokens)
	return d
}

// on is a statement about deliveries on one database.
func on[In, Out any](
	s *postgres.DB, statement func(context.Context, *postgres.DB, []In) ([]Out, error),
) func(context.Context, []In) ([]Out, error) {
	return func(ctx context.Context, all []In) ([]Out, error) { return statement(ctx, s, all) }
}

// Lags reports whether a webhook's receiver hasn't kept up with this process: it fails, or it is
// slower than its deliveries arrive.
func (d *Deliveries) Lags(webhook publicid.Webhook) bool { return d.limits.Lags(webhook) }

// Due is one delivery and the number of its next attempt.
type Due struct {
	ID      publicid.Delivery `json:"id"`
	Webhook publicid.Webhook  `json:"webhook"`
	Attempt int               `json:"attempt"`
}

// AttemptParams are the deliveries to attempt now.
type AttemptParams struct {
	Deliveries []Due `json:"deliveries"`
}

// Pending is a delivery that hasn't ended, with the delay until it is due again. The delay counts
// from the end of the activity.
type Pending struct {
	Due
	In time.Duration `json:"in"`
}

// AttemptResult holds the remaining work, and the answers for operators.
type AttemptResult struct {
	Pending []Pending `json:"pending,omitempty"`
	// Failed are the deliveries that failed for good.
	Failed []publicid.Delivery `json:"failed,omitempty"`
	// Answers are the results of the attempts, in the order of the parameters: the receiver's
	// status, or an error without one. An answer is empty if no attempt was made.
	Answers []string `json:"answers,omitempty"`
}

// AttemptFirst makes the first attempts of a new group, all of them at the same time. It postpones
// deliveries that get no slot, memory or token.
func (d *Deliveries) AttemptFirst(ctx context.Context, p AttemptParams) (AttemptResult, error) {
	ctx, end := untilShutdown(ctx)
	defer end()
	return d.attemptAll(ctx, p, round{wait: d.limits.FirstWait, first: true}, nil)
}

// AttemptLater makes attempts after the first, and postponed first ones.
func (d *Deliveries) AttemptLater(ctx context.Context, p AttemptParams) (AttemptResult, error) {
	ctx, end := untilShutdown(ctx)
	defer end()
	go heartbeat(ctx)
	webhooks := make([]publicid.Webhook, len(p.Deliveries))
	for i, due := range p.Deliveries {
		webhooks[i] = due.Webhook
	}
	owners, err := d.owners(ctx, webhooks)
	if err != nil {
		return AttemptResult{}, err
	}
	admitted, leave := d.later.Admit(webhooks, owners)
	defer leave()
	return d.attemptAll(ctx, p, round{wait: func(publicid.Webhook) time.Duration { return fairness.SlotWait }}, admitted)
}

// owners returns the organizations of the webhooks. The run doesn't have all of them.
func (d *Deliveries) owners(ctx context.Context, webhooks []publicid.Webhook) (map[publicid.Webhook]publicid.Organization, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return delivery.OwnersOf(ctx, d.store, webhooks)
}

// untilShutdown returns the activity's context without premature cancellations. The SDK cancels an
// activity after a single heartbeat without an answer. Temporal times out an activity even if only
// its heartbeats are lost. Attempts under way would be cut off and repeated, although their
// receivers have the events. Leases keep other workers off until the attempts are over. The context
// therefore ends only with the worker's drain time or the activity's own deadline.
func untilShutdown(ctx context.Context) (_ context.Context, end func()) {
	lasting, cancel := context.WithDeadline(context.WithoutCancel(ctx), activity.GetInfo(ctx).Deadline)
	forget := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) {
			cancel()
		}
	})
	return lasting, func() { forget(); cancel() }
}

// heartbeat sends heartbeats to Temporal until its context ends.
func heartbeat(ctx context.Context) {
	tick := time.NewTicker(HeartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			activity.RecordHeartbeat(ctx)
		}
	}
}

// round holds the parameters that all attempts of one activity share.
type round struct {
	run workflow.Execution // attemptAll sets it
	// wait is the longest wait for a slot of the webhook and for memory.
	wait func(publicid.Webhook) time.Duration
	// first marks first attempts, which queue behind attempts that a throttle has postponed.
	first bool
}

// attemptAll attempts the deliveries to admitted webhooks; a nil admission admits all of them. It
// postpones the others, and those that get no slot, memory or token in time.
func (d *Deliveries) attemptAll(ctx context.Context, p AttemptParams, r round, admitted fairness.Admission) (AttemptResult, error) {
	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		faults   []error
		outcomes = make([]outcome, len(p.Deliveries))
	)
	r.run = activity.GetInfo(ctx).WorkflowExecution
	waiting, stop := untilStop(ctx)
	defer stop()
	untilShare := d.later.Wait() // one for all, so that they are due together
	for i, due := range p.Deliveries {
		switch admitted[due.Webhook] {
		case fairness.OrganizationShareUsed:
			outcomes[i] = outcome{putOff: true, atLeast: untilShare}
			continue
		case fairness.WebhookShareUsed:
			outcomes[i].putOff = true
			continue
		case fairness.Free:
		}
		all.Go(func() {
			o, err := d.attemptOrPanic(ctx, waiting, r, due)
			if err != nil {
				// The fault is ours, so it doesn't use up one of the receiver's attempts.
				d.counts.fault(ctx)
				mu.Lock()
				faults = append(faults, err)
				mu.Unlock()
				o = again(due, due.Attempt, faultPause)
			}
			outcomes[i] = o
		})
	}
	all.Wait()
	if len(faults) > 0 && (len(faults) == len(p.Deliveries) || ctx.Err() != nil) {
		// The database is down, or this process is stopping. Temporal retries the activity, and the
		// rows then answer for attempts that are already recorded.
		return AttemptResult{}, faults[0]
	}
	for _, err := range faults {
		// Only some deliveries failed, for example because a secret can't be opened. The rest of
		// the group continues without them.
		d.log.ErrorContext(ctx, "attempt can't be made", "workflowId", r.run.ID, "error", err)
	}
	return d.settle(ctx, r.run, p.Deliveries, outcomes)
}

// attemptOrPanic calls attempt and turns a panic into an error. Without that, a panic in a
// goroutine would end the process and all other attempts with it.
func (d *Deliveries) attemptOrPanic(ctx, waiting context.Context, r round, due Due) (_ outcome, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = errors.Errorf("panic in an attempt: %v\n\n%s", what, debug.Stack())
		}
	}()
	return d.attempt(ctx, waiting, r, due)
}

// settle does the remaining work after all attempts have ended.
func (d *Deliveries) settle(ctx context.Context, run workflow.Execution, of []Due, outcomes []outcome) (AttemptResult, error) {
	if err := d.putOff(ctx, run, of, outcomes); err != nil {
		return AttemptResult{}, err
	}
	if err := d.followStreaks(ctx, of, outcomes); err != nil {
		return AttemptResult{}, err
	}
	return resultOf(of, outcomes), nil
}

// untilStop returns a context that ends with the activity, or when its worker stops taking work.
// Deliveries that wait for a slot or for memory are then postponed.
func untilStop(ctx context.Context) (waiting context.Context, stop context.CancelFunc) {
	waiting, stop = context.WithCancel(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	go func() {
		select {
		case <-stopping:
			stop()
		case <-waiting.Done():
		}
	}()
	return waiting, stop
}
