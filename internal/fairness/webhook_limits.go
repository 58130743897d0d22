package fairness

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"earshot/internal/publicid"
)

// WebhookLimits bounds the attempts in flight to each webhook, so that one receiver that
// hangs can't hold what the others need, and says when those can be made that find no slot
// free.
type WebhookLimits struct {
	rules rules

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
	backlog reservations
	retries map[int]*reservations
}

// NewWebhookLimits are those of a process.
func NewWebhookLimits() *WebhookLimits { return newWebhookLimits(production()) }

func newWebhookLimits(r rules) *WebhookLimits {
	return &WebhookLimits{rules: r, of: map[publicid.Webhook]*webhookLimit{}}
}

// Acquire waits for a slot until the context ends, and returns the function that gives it
// back, or nil.
func (l *WebhookLimits) Acquire(ctx context.Context, webhook publicid.Webhook) (release func()) {
	own := l.use(webhook)
	// A free slot is taken however short the wait.
	if !own.slots.TryAcquire(1) && own.slots.Acquire(ctx, 1) != nil {
		l.drop(webhook, own)
		return nil
	}
	return func() {
		own.slots.Release(1)
		l.drop(webhook, own)
	}
}

// FirstWait is how long a first attempt may wait for a slot: not at all where the backlog
// reaches further than that.
func (l *WebhookLimits) FirstWait(webhook publicid.Webhook) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[webhook]; own != nil && time.Until(own.backlog.next) > l.rules.firstWait {
		return 0
	}
	return l.rules.firstWait
}

// Answered notes how an attempt ended that has its slot still, and how long its receiver
// took.
func (l *WebhookLimits) Answered(webhook publicid.Webhook, ok bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	// Of the last eight or so: a receiver that comes back is soon known to be fast.
	own.duration = cmp.Or(own.duration, took)
	own.duration += (took - own.duration) / 8
	own.failures++
	if ok {
		own.failures = 0
	}
}

// Lags tells a webhook whose attempts fail one after the other, or that has more to do than
// it has slots: attempts in flight, put off, and retries.
func (l *WebhookLimits) Lags(webhook publicid.Webhook) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	return own != nil && (own.failures > l.rules.toleratedFailures || own.users > l.rules.webhookConcurrency)
}

func (l *WebhookLimits) use(webhook publicid.Webhook) *webhookLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[webhook]
	if own == nil {
		own = &webhookLimit{slots: semaphore.NewWeighted(int64(l.rules.webhookConcurrency)), retries: map[int]*reservations{}}
		l.of[webhook] = own
	}
	own.users++
	return own
}

func (l *WebhookLimits) drop(webhook publicid.Webhook, own *webhookLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.of, webhook)
	}
}

// ReserveBacklog is how long n attempts of one group wait that found no slot: until the
// receiver has had time for all before them and for these. One attempt takes its average
// duration divided by the attempts that are made at once. A single attempt is a group too, and of
// groups the later queue has laterPerWebhook at once.
func (l *WebhookLimits) ReserveBacklog(webhook publicid.Webhook, n int) time.Duration {
	atOnce := time.Duration(min(l.rules.webhookConcurrency, n*l.rules.laterPerWebhook))
	return l.reserve(webhook, 0, func(own *webhookLimit, now time.Time) time.Duration {
		each := cmp.Or(own.duration, l.rules.firstWait) / atOnce
		return own.backlog.reserve(&l.rules, now, time.Duration(n)*each)
	})
}

// ReserveRetry is how much later than its delay an attempt of that number is made, so that
// retries to the webhook keep their interval.
func (l *WebhookLimits) ReserveRetry(webhook publicid.Webhook, number int, delay time.Duration) (late time.Duration) {
	return l.reserve(webhook, min(delay, l.rules.failuresKept), func(own *webhookLimit, now time.Time) time.Duration {
		if own.retries[number] == nil {
			own.retries[number] = &reservations{}
		}
		return own.retries[number].reserve(&l.rules, now.Add(delay), l.rules.retryInterval)
	}) - l.rules.retryInterval
}

// Throttled notes that a group has attempts that wait so long for their turns under the webhook's
// throttle: it has more to do than it may, as one has that lags.
func (l *WebhookLimits) Throttled(webhook publicid.Webhook, wait time.Duration) {
	l.reserve(webhook, 0, func(*webhookLimit, time.Time) time.Duration { return wait })
}

// ThrottleReach is how long an attempt may wait for a token of its webhook's throttle, and how far
// ahead turns are given out where there is none.
func (l *WebhookLimits) ThrottleReach() (within, ahead time.Duration) {
	return l.rules.firstWait, l.rules.reservedAhead
}

// BehindReserved is how long an attempt waits before it asks again that came when everything was
// given out.
func (l *WebhookLimits) BehindReserved() time.Duration {
	return l.rules.jitter(l.rules.reservedAhead / 2)
}

// reserve makes a reservation, and keeps the webhook's entry until its time has come and for
// so much longer: without an entry everything begins anew.
func (l *WebhookLimits) reserve(webhook publicid.Webhook, longer time.Duration, take func(*webhookLimit, time.Time) time.Duration) time.Duration {
	own := l.use(webhook)
	l.mu.Lock()
	wait := take(own, time.Now())
	l.mu.Unlock()
	time.AfterFunc(wait+longer, func() { l.drop(webhook, own) })
	return wait
}

// reservations are of intervals, one after the other.
type reservations struct {
	// next is the end of the last reservation.
	next time.Time
}

// reserve takes the first interval of that length that is free after the moment from, and
// returns the time between that moment and the interval's end. Where it would end more than
// reservedAhead later, nothing is reserved: the caller waits for a random time, at least half
// of that, and asks again.
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
