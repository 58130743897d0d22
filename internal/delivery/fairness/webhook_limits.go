package fairness

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// WebhookLimits limits the attempts in flight to each webhook, so that one hanging receiver can't
// take the resources of the others. It also determines when attempts that get no slot can be made.
type WebhookLimits struct {
	rules rules

	mu sync.Mutex
	// all counts reservations, and attempts that have a slot or wait for one.
	all inflight.States[publicid.Webhook, *webhookLimit]
}

type webhookLimit struct {
	slots *semaphore.Weighted
	// duration is the average duration of an attempt. It is 0 before the first one has ended.
	duration time.Duration
	// failures counts the failed attempts since the last success.
	failures int
	// backlog holds the reservations of attempts that got no slot. retries holds those of retries,
	// by the number of the attempt.
	backlog reservations
	retries map[int]*reservations
}

// NewWebhookLimits makes the limits of a process.
func NewWebhookLimits() *WebhookLimits { return newWebhookLimits(production()) }

func newWebhookLimits(r rules) *WebhookLimits {
	return &WebhookLimits{rules: r, all: inflight.NewStates[publicid.Webhook](func() *webhookLimit {
		return &webhookLimit{slots: semaphore.NewWeighted(int64(r.webhookConcurrency)), retries: map[int]*reservations{}}
	})}
}

// Acquire waits for a slot until the context ends. It returns the function that gives the slot
// back, or nil if it got none.
func (l *WebhookLimits) Acquire(ctx context.Context, webhook publicid.Webhook) (release func()) {
	own := l.use(webhook)
	// Take a free slot even if the context has already ended.
	if !own.slots.TryAcquire(1) && own.slots.Acquire(ctx, 1) != nil {
		l.drop(webhook)
		return nil
	}
	return func() {
		own.slots.Release(1)
		l.drop(webhook)
	}
}

// FirstWait is how long a first attempt may wait for a slot. It is zero if the webhook's backlog
// reaches further than that.
func (l *WebhookLimits) FirstWait(webhook publicid.Webhook) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.all.Of[webhook]; own != nil && time.Until(own.backlog.next) > l.rules.firstWait {
		return 0
	}
	return l.rules.firstWait
}

// Answered records how an attempt ended and how long its receiver took. The attempt must still have
// its slot.
func (l *WebhookLimits) Answered(webhook publicid.Webhook, ok bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.all.Of[webhook]
	// The average covers about the last eight attempts, so it soon shows that a receiver is fast
	// again.
	own.duration = cmp.Or(own.duration, took)
	own.duration += (took - own.duration) / 8
	own.failures++
	if ok {
		own.failures = 0
	}
}

// Lags reports whether a webhook lags: its attempts fail one after the other, or it has more work
// than slots. Attempts in flight, postponed attempts and retries count as work.
func (l *WebhookLimits) Lags(webhook publicid.Webhook) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.all.Of[webhook]
	return own != nil && (own.failures > l.rules.toleratedFailures || l.all.Counts[webhook] > l.rules.webhookConcurrency)
}

func (l *WebhookLimits) use(webhook publicid.Webhook) *webhookLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Up(webhook)
}

func (l *WebhookLimits) drop(webhook publicid.Webhook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Down(webhook)
}

// ReserveBacklog returns the wait for n attempts of one group that got no slot. It is the time that
// the receiver needs for all attempts before them and for these. One attempt takes the average
// duration divided by the number of attempts at once. A single attempt is a group too, and the
// later queue runs at most laterPerWebhook groups at once.
func (l *WebhookLimits) ReserveBacklog(webhook publicid.Webhook, n int) time.Duration {
	atOnce := time.Duration(min(l.rules.webhookConcurrency, n*l.rules.laterPerWebhook))
	return l.reserve(webhook, 0, func(own *webhookLimit, now time.Time) time.Duration {
		each := cmp.Or(own.duration, l.rules.firstWait) / atOnce
		return own.backlog.reserve(&l.rules, now, time.Duration(n)*each)
	})
}

// ReserveRetry returns how much later than its delay an attempt with this number is made, so that
// retries to the webhook keep their interval.
func (l *WebhookLimits) ReserveRetry(webhook publicid.Webhook, number int, delay time.Duration) (late time.Duration) {
	return l.reserve(webhook, min(delay, l.rules.failuresKept), func(own *webhookLimit, now time.Time) time.Duration {
		if own.retries[number] == nil {
			own.retries[number] = &reservations{}
		}
		return own.retries[number].reserve(&l.rules, now.Add(delay), l.rules.retryInterval)
	}) - l.rules.retryInterval
}

// Throttled records that a group has attempts that wait this long for their turns under the
// webhook's throttle. For this time the group counts as work of the webhook, which makes it lag if
// it has too much.
func (l *WebhookLimits) Throttled(webhook publicid.Webhook, wait time.Duration) {
	l.reserve(webhook, 0, func(*webhookLimit, time.Time) time.Duration { return wait })
}

// ThrottleReach returns how long an attempt may wait for a token of its webhook's throttle. It also
// returns how far ahead turns are reserved if there is no token.
func (l *WebhookLimits) ThrottleReach() (within, ahead time.Duration) {
	return l.rules.firstWait, l.rules.reservedAhead
}

// BehindReserved returns the wait before an attempt asks again, if all turns were taken.
func (l *WebhookLimits) BehindReserved() time.Duration {
	return l.rules.jitter(l.rules.reservedAhead / 2)
}

// reserve makes a reservation. It keeps the webhook's entry until the reserved time plus longer,
// because without an entry the limits start from zero.
func (l *WebhookLimits) reserve(webhook publicid.Webhook, longer time.Duration, take func(*webhookLimit, time.Time) time.Duration) time.Duration {
	own := l.use(webhook)
	l.mu.Lock()
	wait := take(own, time.Now())
	l.mu.Unlock()
	time.AfterFunc(wait+longer, func() { l.drop(webhook) })
	return wait
}

// reservations are consecutive intervals.
type reservations struct {
	// next is the end of the last reservation.
	next time.Time
}

// reserve takes the first free interval of this length after from. It returns the time between from
// and the interval's end. If that time is more than reservedAhead, it reserves nothing. The caller
// then waits for a random time, at least half of reservedAhead, and asks again.
func (r *reservations) reserve(by *rules, from time.Time, interval time.Duration) time.Duration {
	begin := from
	if r.next.After(from) {
		begin = r.next
	}
	end := begin.Add(interval)
	if end.Sub(from) > by.reservedAhead {
		return by.jitter(by.reservedAhead / 2)
	}
	r.next = end
	return end.Sub(from)
}
