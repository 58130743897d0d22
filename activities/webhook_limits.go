package activities

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"earshot/internal/publicid"
	"earshot/webhook"
)

const (
	// Attempts in flight to one webhook from one process: a whole group of 60
	// finds room at once. A receiver that answers in 10 ms takes 6,400 a second
	// through 64; one that hangs holds 64.
	webhookConcurrency = 64
	// As many of them as a backlog is scheduled for; the others are for what is new
	// meanwhile.
	backlogConcurrency = 48
	// How long an attempt is taken to last before one has ended: as long as the first
	// who were put off waited in vain.
	assumedDuration = firstWait
	// Retries to one webhook from one process are so far apart: 100 a second, as many as a
	// recovery sends. Who has just come back isn't knocked down by what fell due together.
	retryInterval = 10 * time.Millisecond
	// How long failures are remembered at most: a receiver that is back lags no longer
	// than that.
	failuresKept = time.Minute
	// A webhook lags whose attempts failed more often than this, one after the other. As
	// many as a delivery has: those may be the fault of that event.
	toleratedFailures = webhook.MaxAttempts
	// How far ahead times are reserved. What comes behind is put off by a part of that and
	// asks again, so that a receiver which comes back gets everything within it.
	reservedAhead = 10 * time.Minute
)

// webhookLimits bounds the attempts in flight to each webhook, so that one receiver that
// hangs can't hold what the others need, and says when those can be made that find no slot
// free.
type webhookLimits struct {
	concurrency int64

	mu sync.Mutex
	of map[publicid.Webhook]*webhookLimit
}

type webhookLimit struct {
	slots *semaphore.Weighted
	// users are attempts that have a slot or wait for one, and reservations. The entry is
	// dropped with the last of them.
	users int
	// duration of an attempt, on average; 0 before one ended.
	duration time.Duration
	// failures of attempts since one succeeded.
	failures int
	// backlog has the reservations of attempts that found no slot, retries those of retries,
	// by the number of the attempt.
	backlog rate
	retries map[int]*rate
}

func newWebhookLimits(concurrency int64) *webhookLimits {
	return &webhookLimits{concurrency: concurrency, of: map[publicid.Webhook]*webhookLimit{}}
}

// acquire waits for a slot until the context ends, and returns the function that gives it
// back, or nil. That function is told whether an attempt was made with it.
func (l *webhookLimits) acquire(ctx context.Context, webhook publicid.Webhook) (release func(attempted bool)) {
	own := l.use(webhook)
	// A free slot is taken however short the wait.
	if !own.slots.TryAcquire(1) && own.slots.Acquire(ctx, 1) != nil {
		l.drop(webhook, own)
		return nil
	}
	began := time.Now()
	return func(attempted bool) {
		own.slots.Release(1)
		if attempted {
			l.measured(own, time.Since(began))
		}
		l.drop(webhook, own)
	}
}

// firstWait is how long a first attempt may wait for a slot: not at all where the backlog
// reaches further than that.
func (l *webhookLimits) firstWait(webhook publicid.Webhook) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[webhook]; own != nil && time.Until(own.backlog.next) > firstWait {
		return 0
	}
	return firstWait
}

// answered notes how an attempt ended that has its slot still.
func (l *webhookLimits) answered(webhook publicid.Webhook, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	own.failures++
	if ok {
		own.failures = 0
	}
}

// lags tells a webhook whose attempts fail one after the other, or that has more to do than
// it has slots: attempts in flight, put off, and retries.
func (l *webhookLimits) lags(webhook publicid.Webhook) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	return own != nil && (own.failures > toleratedFailures || int64(own.users) > l.concurrency)
}

func (l *webhookLimits) use(webhook publicid.Webhook) *webhookLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	if own == nil {
		own = &webhookLimit{slots: semaphore.NewWeighted(l.concurrency), retries: map[int]*rate{}}
		l.of[webhook] = own
	}
	own.users++
	return own
}

func (l *webhookLimits) drop(webhook publicid.Webhook, own *webhookLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.of, webhook)
	}
}

func (l *webhookLimits) measured(own *webhookLimit, duration time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Of the last eight or so: a receiver that comes back is soon known to be fast.
	own.duration = cmp.Or(own.duration, duration)
	own.duration += (duration - own.duration) / 8
}

// reserveBacklog is how long n attempts of one group wait that found no slot: until the
// receiver has had time for all before them and for these. One attempt takes its average
// duration divided by the attempts that are made at once, and at least the interval. A single
// attempt is a group too, and of groups the later queue has laterPerWebhook at once.
func (l *webhookLimits) reserveBacklog(webhook publicid.Webhook, n int, interval time.Duration) time.Duration {
	atOnce := time.Duration(min(backlogConcurrency, n*laterPerWebhook))
	return l.reserve(webhook, 0, func(own *webhookLimit, now time.Time) time.Duration {
		each := max(interval, cmp.Or(own.duration, assumedDuration)/atOnce)
		return own.backlog.reserve(now, time.Duration(n)*each)
	})
}

// reserveRetry is how much later than its delay an attempt of that number is made, so that
// retries to the webhook keep their interval.
func (l *webhookLimits) reserveRetry(webhook publicid.Webhook, number int, delay time.Duration) (late time.Duration) {
	return l.reserve(webhook, min(delay, failuresKept), func(own *webhookLimit, now time.Time) time.Duration {
		if own.retries[number] == nil {
			own.retries[number] = &rate{}
		}
		return own.retries[number].reserve(now.Add(delay), retryInterval)
	}) - retryInterval
}

// reserve makes a reservation, and keeps the webhook's entry until its time has come and for
// so much longer: without an entry everything begins anew.
func (l *webhookLimits) reserve(webhook publicid.Webhook, longer time.Duration, take func(*webhookLimit, time.Time) time.Duration) time.Duration {
	own := l.use(webhook)
	l.mu.Lock()
	wait := take(own, time.Now())
	l.mu.Unlock()
	time.AfterFunc(wait+longer, func() { l.drop(webhook, own) })
	return wait
}

// rate reserves intervals, one after the other.
type rate struct {
	// next is the end of the last reservation.
	next time.Time
}

// reserve takes the first interval of that length that is free after the moment from, and
// returns the time between that moment and the interval's end. Where it would end more than
// reservedAhead later, nothing is reserved: the caller waits for a random time, at least half
// of that, and asks again.
func (r *rate) reserve(from time.Time, interval time.Duration) time.Duration {
	begin := from
	if r.next.After(from) {
		begin = r.next
	}
	end := begin.Add(interval)
	if end.Sub(from) > reservedAhead {
		return jitter(reservedAhead / 2)
	}
	r.next = end
	return end.Sub(from)
}

// jitter is once to twice as long, at random, so that what waits together doesn't come back
// together.
func jitter(d time.Duration) time.Duration { return d + rand.N(d) } //nolint:gosec // not a secret
