// Package fairness holds the rules by which organizations and webhooks share limited resources.
// These are the starts of workflows, the attempts to a receiver, the later queue and the memory for
// payloads.
//
// The page docs/fairness.md explains how the rules act together, with a figure for each. The
// simulation that produces these figures is among the tests.
package fairness

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"earshot/internal/memory"
	"earshot/internal/send"
	"earshot/webhook"
)

// SlotWait is how long a later attempt waits for a slot of its webhook and for payload memory
// before it is postponed. Within this time, every attempt in flight gives both back.
const SlotWait = send.AttemptTimeout

// rules are the parameters. Only the simulation changes them, one at a time.
type rules struct {
	// A workflow costs Temporal about 10 ms of processor time, and each further delivery of a group
	// costs a tenth of that. A stream is therefore busy when it has used up singleBurst and exceeds
	// singleRate deliveries a second. A busy stream starts a group every busyInterval, 37 a second,
	// so a delivery waits for 14 ms on average. Any other stream starts each delivery immediately.
	singleRate   rate.Limit
	singleBurst  int
	busyInterval time.Duration
	// busyFor is how long a stream counts as busy after it last exceeded its rate.
	busyFor time.Duration
	// A stream to lagging webhooks starts a group every laggingInterval, however few deliveries it
	// has. These deliveries wait for their receiver anyway, and fewer workflows leave more of
	// Temporal to the others. A longer interval would make larger groups. Their attempts are made
	// at once and would keep the processors from the others.
	laggingInterval time.Duration
	// maxWaiting is the number of deliveries that may wait for a start. The sweep finds deliveries
	// beyond it. 100,000 deliveries take about 25 MB.
	maxWaiting int

	// webhookConcurrency is the number of attempts in flight to one webhook from one process. A
	// whole group of 60 fits at once. A receiver that answers in 10 ms takes 6,400 attempts a
	// second through 64 slots; a receiver that hangs holds all 64.
	webhookConcurrency int
	// firstWait is how long a first attempt waits for a slot of its webhook and for payload memory.
	// Then it is postponed to the later queue, which costs Temporal as much as the first round. One
	// second is enough for a burst to a fast receiver. It is a small part of the 10 s that a slow
	// receiver takes anyway. It is also the assumed duration of an attempt until the first one has
	// ended.
	firstWait time.Duration
	// retryInterval is the time between retries to one webhook from one process. 100 a second are
	// as many as a recovery sends. The interval protects a receiver that has just recovered from
	// all the retries that are due together.
	retryInterval time.Duration
	// failuresKept is how long failures are remembered at most. A receiver that has recovered lags
	// no longer than that.
	failuresKept time.Duration
	// toleratedFailures is the number of failed attempts in a row that a webhook may have without
	// lagging. It equals the attempts of one delivery, because those may be the fault of its event.
	toleratedFailures int
	// reservedAhead is how far ahead times are reserved. Attempts beyond it are postponed by a part
	// of that time and ask again. A receiver that recovers therefore gets everything within this
	// time.
	reservedAhead time.Duration

	// The worker of the later queue takes up to 200 groups at a time. On a machine that is short of
	// memory or processor time it takes 80. The shares leave enough for the others.
	//
	// laterPerWebhook is a quarter of the 80. A receiver that hangs holds each group for 10 s, so
	// it gets the retries of two groups a second.
	laterPerWebhook int
	// laterPerOrganization is half of the 80. An organization may have 25 webhooks.
	laterPerOrganization int
	// laterWait is the minimum time by which a group is postponed if its organization has used up
	// its share. It is as long as an attempt may take, so that hundreds of groups don't ask again
	// every second. The backlog of the group's webhook can't determine the time, because groups of
	// other webhooks hold the share.
	laterWait time.Duration

	// payloadMemoryMax is the number of bytes that the payloads of all attempts in flight in a
	// process may take. One organization alone may take half of it, 64 MiB. The 64 attempts of a
	// webhook take 48 MiB if their payloads have the maximum of 768 KiB. One receiver that hangs
	// therefore doesn't block the organization's other webhooks. Most payloads have 2 KiB and never
	// come near the limit, which would take 65,000 of them.
	payloadMemoryMax int
	// memoryWait is the minimum time by which an attempt without memory is postponed. It is as long
	// as an attempt may take, because attempts in flight hold their memory until they end.
	memoryWait time.Duration

	// randN returns a random number below n.
	randN func(n int64) int64
}

func production() rules {
	return rules{
		singleRate: 60, singleBurst: 10, busyInterval: 27 * time.Millisecond, busyFor: time.Second,
		laggingInterval: 400 * time.Millisecond, maxWaiting: 100_000,
		webhookConcurrency: 64, firstWait: time.Second, retryInterval: 10 * time.Millisecond,
		failuresKept: time.Minute, toleratedFailures: webhook.MaxAttempts, reservedAhead: 10 * time.Minute,
		laterPerWebhook: 20, laterPerOrganization: 40, laterWait: send.AttemptTimeout,
		payloadMemoryMax: memory.Attempts, memoryWait: send.AttemptTimeout,
		randN: rand.Int64N,
	}
}

// jitter returns a random duration between d and twice d, so that attempts that wait together don't
// return together.
func (r *rules) jitter(d time.Duration) time.Duration { return d + time.Duration(r.randN(int64(d))) }
