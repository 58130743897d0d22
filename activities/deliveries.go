// Package activities holds the side effects of the workflows. Ids go in, ids
// come out: no payload, secret or URL ever enters a workflow's history.
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
	"earshot/internal/fairness"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
	"earshot/internal/telemetry"
)

const (
	// How long a delivery waits after a fault of our own that the others of its
	// group don't share.
	faultPause = 30 * time.Second
	// What a lease has beyond the attempt itself: time to record, which takes some
	// milliseconds. It only matters where the worker is dead by then.
	leaseMargin = 2 * time.Second
	// Longer than a statement takes on a database that is well, short enough for the
	// activity to report one that isn't.
	statementTimeout = 5 * time.Second
	// Rows in one statement.
	batchMax = 256
)

// HeartbeatInterval is how often an attempt's activity tells Temporal that it is alive:
// three times within its heartbeat timeout of 12 s. The worker has to be told, because
// the SDK otherwise keeps heartbeats back for 80 % of that timeout, and then a stall of
// Temporal of 2.4 s is enough for it to take the activity for dead. It is also how long
// the SDK waits for the answer to one.
const HeartbeatInterval = 4 * time.Second

// Errors of deliveries that ended without an attempt.
const (
	// ErrorWebhookDisabled: the webhook was disabled.
	ErrorWebhookDisabled = "webhook_disabled"
	// ErrorGivenUp: an operator ended the delivery or its workflow.
	ErrorGivenUp = "given_up"
)

// DeliveryOptions are what a deployment chooses of attempts.
type DeliveryOptions struct {
	// Delays are those before attempts 2, 3, ….
	Delays []time.Duration
	// CountAttempts counts each failed attempt for the webhook's streak, instead of
	// each delivery that failed for good.
	CountAttempts bool
	// Counts of what happens; nil counts nothing.
	Counts *Counts
	Log    *slog.Logger
}

// Deliveries makes attempts.
type Deliveries struct {
	store   *store.Store
	sender  *send.Sender
	secrets *seal.Box
	streaks StreakFollower
	options DeliveryOptions
	counts  *Counts
	log     *slog.Logger

	limits  *fairness.WebhookLimits
	later   *fairness.LaterLimits
	memory  *fairness.PayloadMemory
	sizes   *batch.Batcher[publicid.Delivery, store.PayloadSize]
	claims  *batch.Batcher[store.Claim, store.Claimed]
	tokens  *batch.Batcher[store.WebhookTokenAsk, store.WebhookToken]
	results *batch.Batcher[store.Result, bool]
}

// NewDeliveries makes the activities.
func NewDeliveries(s *store.Store, sender *send.Sender, secrets *seal.Box, follow StreakFollower, o DeliveryOptions) *Deliveries {
	if o.Counts == nil {
		o.Counts = NewCounts(telemetry.Meter{})
	}
	d := &Deliveries{
		store: s, sender: sender, secrets: secrets, streaks: follow, options: o, counts: o.Counts, log: o.Log,
		limits: fairness.NewWebhookLimits(), later: fairness.NewLaterLimits(), memory: fairness.NewPayloadMemory(),
		sizes:   batch.New(batchMax, statementTimeout, s.PayloadSizes),
		claims:  batch.New(batchMax, statementTimeout, s.ClaimDeliveries),
		results: batch.New(batchMax, statementTimeout, s.RecordResults),
	}
	d.tokens = batch.New(batchMax, statementTimeout, d.takeTokens)
	return d
}

// Lags tells a webhook whose receiver hasn't kept up with this process: it fails, or is
// slower than what it is sent.
func (d *Deliveries) Lags(webhook publicid.Webhook) bool { return d.limits.Lags(webhook) }

// Due is one delivery with the attempt that it is due for.
type Due struct {
	ID      publicid.Delivery `json:"id"`
	Webhook publicid.Webhook  `json:"webhook"`
	Attempt int               `json:"attempt"`
}

// AttemptParams are the deliveries to attempt now.
type AttemptParams struct {
	Deliveries []Due `json:"deliveries"`
}

// Pending is a delivery that hasn't ended, and when it is due again, counted
// from the end of the activity.
type Pending struct {
	Due
	In time.Duration `json:"in"`
}

// AttemptResult holds what is left to do, and what an operator wants to see.
type AttemptResult struct {
	Pending []Pending `json:"pending,omitempty"`
	// Failed are those that failed for good.
	Failed []publicid.Delivery `json:"failed,omitempty"`
	// Answers to the attempts, in the order of the deliveries that were to be made:
	// the receiver's status, or the error where it had none; empty where there was no
	// attempt.
	Answers []string `json:"answers,omitempty"`
}

// AttemptFirst makes the first attempts of a new group, all at once, and puts off what
// finds no slot, no memory or no token.
func (d *Deliveries) AttemptFirst(ctx context.Context, p AttemptParams) (AttemptResult, error) {
	ctx, end := untilShutdown(ctx)
	defer end()
	return d.attemptAll(ctx, p, round{wait: d.limits.FirstWait, first: true}, nil)
}

// AttemptLater makes attempts after the first, and first ones that were put off.
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

// owners are the organizations of the webhooks. The run doesn't know them all.
func (d *Deliveries) owners(ctx context.Context, webhooks []publicid.Webhook) (map[publicid.Webhook]publicid.Organization, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return d.store.WebhookOwners(ctx, webhooks)
}

// untilShutdown is the context of an activity without what ends it too early. Temporal may
// take an activity for dead that only wasn't heard of, and the SDK cancels it even because of
// one heartbeat without an answer: the attempts under way would be cut off, and made again
// although their receivers have them. Their leases keep others off until they are over. So
// only the end of a worker's time to stop ends them, and the activity's own.
func untilShutdown(ctx context.Context) (_ context.Context, end func()) {
	lasting, cancel := context.WithDeadline(context.WithoutCancel(ctx), activity.GetInfo(ctx).Deadline)
	forget := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) {
			cancel()
		}
	})
	return lasting, func() { forget(); cancel() }
}

// heartbeat tells Temporal that the activity is alive, until its context ends.
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

// round is what the attempts that an activity makes at once have in common.
type round struct {
	run workflow.Execution // attemptAll sets it
	// wait is how long an attempt may wait for a slot of its webhook and for memory.
	wait func(publicid.Webhook) time.Duration
	// first attempts stand in line behind those that a throttle has put off.
	first bool
}

// attemptAll attempts what goes to webhooks that are admitted, all where nil is, and puts off
// the others and what finds no slot, no memory or no token in time.
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
	untilShare := d.later.Wait() // one for all, so that they come back together
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
				// Our own fault: the receiver's attempt isn't used up.
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
		// The database is away, or this process stops. The activity is made
		// again, and rows that are recorded then answer for themselves.
		return AttemptResult{}, faults[0]
	}
	for _, err := range faults {
		// One of them only, whose secret can't be opened for example: the others
		// of the group go on without it.
		d.log.ErrorContext(ctx, "attempt can't be made", "workflowId", r.run.ID, "error", err)
	}
	return d.settle(ctx, r.run, p.Deliveries, outcomes)
}

// attemptOrPanic is attempt with a panic as an error, a fault of our own: in a goroutine of
// its own it would end the process, and all other attempts with it.
func (d *Deliveries) attemptOrPanic(ctx, waiting context.Context, r round, due Due) (_ outcome, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = errors.Errorf("panic in an attempt: %v\n\n%s", what, debug.Stack())
		}
	}()
	return d.attempt(ctx, waiting, r, due)
}

// settle does what is left to do when all attempts are over.
func (d *Deliveries) settle(ctx context.Context, run workflow.Execution, of []Due, outcomes []outcome) (AttemptResult, error) {
	if err := d.putOff(ctx, run, of, outcomes); err != nil {
		return AttemptResult{}, err
	}
	if err := d.followStreaks(ctx, of, outcomes); err != nil {
		return AttemptResult{}, err
	}
	return resultOf(of, outcomes), nil
}

// untilStop ends with the activity, or when its worker takes no more work: who
// waits for a slot or for memory is put off then.
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
