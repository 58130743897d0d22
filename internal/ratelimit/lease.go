package ratelimit

import (
	"time"

	"earshot/internal/publicid"
)

// tokens is the state of a key's bucket in one process.
type tokens struct {
	key       publicid.APIKey
	perMinute int
	// leased is the number of tokens that requests may take before the time until.
	leased int
	until  time.Time
	// owed is the number of tokens that were spent without asking the database. A negative number
	// is the rest of an expired lease. The next ask settles it.
	owed int
	// fullAt is the time at which the bucket is full again. The bucket is empty until emptyUntil.
	// Both follow from the last answer of the database.
	fullAt, emptyUntil time.Time
	// ask is the running ask, and waiting the number of requests that wait for one.
	ask     *ask
	waiting int
	// used is the number of requests that passed in the second that began at since, and before the
	// number in the previous second.
	since        time.Time
	used, before int
}

// ask is a request to the database for tokens.
type ask struct {
	began time.Time
	// sent is the time at which the statement started, and owed the tokens owed at that time.
	sent time.Time
	owed int
	// done is closed at the end, after err is set.
	done chan struct{}
	err  error
}

// take takes a leased token or reports that the bucket is empty. If known is false, the database
// has to be asked.
func (t *tokens) take(now time.Time) (ok, known bool) {
	t.expire(now)
	if t.leased > 0 {
		t.leased--
		t.use(now)
		return true, true
	}
	return false, now.Before(t.emptyUntil)
}

// expire ends a lease. The next ask returns the remaining tokens. They need no separate statement:
// they are at most a second's share, which the bucket soon regains anyway.
func (t *tokens) expire(now time.Time) {
	if t.leased > 0 && !now.Before(t.until) {
		t.owed -= t.leased
		t.leased = 0
	}
}

// use counts a request that passed.
func (t *tokens) use(now time.Time) {
	t.count(now)
	t.used++
}

func (t *tokens) count(now time.Time) {
	past := now.Sub(t.since)
	if past < leaseTime {
		return
	}
	t.before = 0
	if past < 2*leaseTime {
		t.before = t.used
	}
	t.since, t.used = now, 0
}

// ahead returns the number of tokens to hold. This is the number that the process spent in a
// second, and at most a second's share of the limit. A single request leads to no lease.
func (t *tokens) ahead(now time.Time) int {
	t.count(now)
	lately := max(t.used, t.before)
	if lately < 2 || t.perMinute < leaseFrom {
		return 0
	}
	return min(lately, int(t.rate()*leaseTime.Seconds()))
}

// low reports whether it is time to ask for more tokens. The remaining ones last for a quarter of a
// second, and the answer takes some milliseconds.
func (t *tokens) low(now time.Time) bool {
	ahead := t.ahead(now)
	return t.leased < ahead && t.leased*4 <= ahead && !now.Before(t.emptyUntil)
}

// write fills in the ask for its statement.
func (t *tokens) write(now time.Time) TokenAsk {
	t.expire(now)
	t.ask.sent, t.ask.owed = now, t.owed
	return TokenAsk{
		Key: t.key, PerMinute: t.perMinute, Needed: t.waiting, Ahead: max(0, t.ahead(now)-t.leased), Owed: t.owed,
	}
}

// answered records the answer, or the error, of the running ask.
func (t *tokens) answered(g TokenGrant, err error, now time.Time) {
	a := t.ask
	t.ask = nil
	a.err = err
	close(a.done)
	if err != nil {
		// The statement may have committed in spite of the error. To be safe, no tokens are
		// returned twice.
		t.owed = max(t.owed, t.owed-a.owed)
		return
	}
	t.expire(now)
	t.owed -= a.owed
	t.leased += g.Granted
	// The lease starts before the database decided. Older tokens are spent first.
	t.until = a.sent.Add(leaseTime)
	// A request that was decided alone has already spent a token of this grant.
	paid := max(0, min(t.owed, t.leased))
	t.owed, t.leased = t.owed-paid, t.leased-paid
	t.fullAt = now.Add(t.flow(g.Missing))
	t.emptyUntil = time.Time{}
	if lacking := 1 - (float64(t.perMinute) - g.Missing); lacking > 0 {
		t.emptyUntil = now.Add(min(max(t.flow(lacking), emptyAtLeast), emptyAtMost))
	}
}

// decideAlone decides with the process's own state, because the database doesn't answer.
func (t *tokens) decideAlone(now time.Time, why error) Decision {
	ok, known := t.take(now)
	if !known {
		if ok = t.left(now) >= 1; ok {
			t.owed++
			t.use(now)
		}
	}
	answer := t.tell(ok, now)
	if !known {
		answer.Alone = why
	}
	return answer
}

// left returns the number of tokens in the bucket, including those that this process leases.
func (t *tokens) left(now time.Time) float64 {
	full := float64(t.perMinute)
	missing := max(0, t.fullAt.Sub(now).Seconds()*t.rate())
	return min(full, max(0, full-missing+float64(t.leased-t.owed)))
}

func (t *tokens) tell(ok bool, now time.Time) Decision {
	left := t.left(now)
	if !ok {
		// A refused request never reports a whole token.
		left = min(left, 0.99)
	}
	return Decision{OK: ok, PerMinute: t.perMinute, Left: left, At: now}
}

// rate is the number of tokens that flow into the bucket in a second, and flow the time for n
// tokens.
func (t *tokens) rate() float64 { return float64(t.perMinute) / 60 }

func (t *tokens) flow(n float64) time.Duration {
	return time.Duration(n / t.rate() * float64(time.Second))
}
