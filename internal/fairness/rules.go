// Package fairness holds the rules by which organizations and webhooks share what all of them
// need: the starts of workflows, the attempts to a receiver, the later queue and the memory for
// payloads. docs/fairness.md tells how they act together, with the figure of each; the
// simulation that the figures come from is among the tests.
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
// before it is put off: within it each attempt that is in flight gives them back.
const SlotWait = send.AttemptTimeout

// rules are the parameters. The simulation changes them one by one; nobody else does.
type rules struct {
	// A workflow costs Temporal some 10 ms of processor time, one more delivery in a
	// group a tenth of that. So a stream of more than singleRate deliveries a second,
	// once singleBurst are used up, is busy and starts a group every busyInterval, 37 a
	// second: a delivery waits for 14 ms on average. Any other stream starts each at once.
	singleRate   rate.Limit
	singleBurst  int
	busyInterval time.Duration
	// How long a stream counts as busy after it last exceeded its rate.
	busyFor time.Duration
	// A stream to webhooks that lag starts a group every laggingInterval, however little
	// it carries: these deliveries wait for their receiver anyway, and fewer workflows
	// leave Temporal to the others. It isn't longer, because the attempts of a group are
	// made at once, and large groups would keep the processors from the others.
	laggingInterval time.Duration
	// Deliveries that may wait for a start; beyond, the sweep finds them. 100,000 of them
	// take some 25 MB.
	maxWaiting int

	// Attempts in flight to one webhook from one process: a whole group of 60
	// finds room at once. A receiver that answers in 10 ms takes 6,400 a second
	// through 64; one that hangs holds 64.
	webhookConcurrency int
	// How long a first attempt waits for a slot of its webhook and for payload memory
	// before it is put off to the later queue, which costs Temporal as much as the first
	// round: enough for a burst to a fast receiver, and a small part of the 10 s that a
	// slow one takes anyway. It is also how long an attempt is taken to last before one has
	// ended.
	firstWait time.Duration
	// Retries to one webhook from one process are so far apart: 100 a second, as many as a
	// recovery sends. Who has just come back isn't knocked down by what fell due together.
	retryInterval time.Duration
	// How long failures are remembered at most: a receiver that is back lags no longer
	// than that.
	failuresKept time.Duration
	// A webhook lags whose attempts failed more often than this, one after the other. As
	// many as a delivery has: those may be the fault of that event.
	toleratedFailures int
	// How far ahead times are reserved. What comes behind is put off by a part of that and
	// asks again, so that a receiver which comes back gets everything within it.
	reservedAhead time.Duration

	// The worker of the later queue takes 80 groups at a time on a machine that is short of
	// memory or processor time, and up to 200 otherwise. What these shares leave is enough
	// for everybody else. A webhook has a quarter of the 80: a receiver that hangs holds each
	// of them for 10 s, so it gets the retries of two groups a second.
	laterPerWebhook int
	// Half: an organization may have 25 webhooks.
	laterPerOrganization int
	// How long a group is put off at least whose organization has its share under way: as
	// long as an attempt may take, so that hundreds of groups don't ask again every second.
	// The backlog of its own webhook says nothing of when the groups of another end.
	laterWait time.Duration

	// The memory that the payloads of all attempts under way in a process take together, in
	// bytes. An organization alone has half of it, 64 MiB: a webhook's 64 attempts of the
	// largest payload there is, 768 KiB, take 48 MiB, so one receiver that hangs doesn't
	// keep the organization's others out. Payloads of 2 KiB, as most are, never come near:
	// 65,000 of them would have to be under way.
	payloadMemoryMax int
	// How long an attempt is put off at least that found no room: as long as those under way
	// may take, because they have it until then.
	memoryWait time.Duration

	// randN is a random number below n.
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

// jitter is once to twice as long, at random, so that what waits together doesn't come back
// together.
func (r *rules) jitter(d time.Duration) time.Duration { return d + time.Duration(r.randN(int64(d))) }
