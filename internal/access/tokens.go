package access

import (
	"time"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// tokens are what a process has and knows of a key's bucket.
type tokens struct {
	key       publicid.APIKey
	perMinute int
	// leased are tokens that requests may take until then.
	leased int
	until  time.Time
	// owed were spent without asking; below zero they are left from a lease that ended.
	// Either is settled with the next ask.
	owed int
	// fullAt is when the bucket is full again, and emptyUntil until when it has nothing,
	// as the database said last.
	fullAt, emptyUntil time.Time
	// ask is under way; waiting are requests that wait for one.
	ask     *ask
	waiting int
	// used are requests that passed in the second since, before those of the one before.
	since        time.Time
	used, before int
}

// ask is a question to the database.
type ask struct {
	began time.Time
	// sent is when it went, with what was owed then.
	sent time.Time
	owed int
	// done is closed at the end, after err says whether there was an answer.
	done chan struct{}
	err  error
}

// take takes a leased token, or tells that the bucket is empty. Where neither is known the
// database has to be asked.
func (t *tokens) take(now time.Time) (ok, known bool) {
	t.expire(now)
	if t.leased > 0 {
		t.leased--
		t.use(now)
		return true, true
	}
	return false, now.Before(t.emptyUntil)
}

// expire ends a lease. What is left of it goes back with the next ask. No statement is made
// for that alone: it is a second's worth at most, so the bucket soon has as much again.
func (t *tokens) expire(now time.Time) {
	if t.leased > 0 && !now.Before(t.until) {
		t.owed -= t.leased
		t.leased = 0
	}
}

// use counts a request that passes.
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

// ahead is how many tokens to keep: as many as the process spent in a second, and never
// more than flow into the bucket in one. A single request tells of no other.
func (t *tokens) ahead(now time.Time) int {
	t.count(now)
	lately := max(t.used, t.before)
	if lately < 2 || t.perMinute < leaseFrom {
		return 0
	}
	return min(lately, int(t.rate()*leaseTime.Seconds()))
}

// low says that it is time to ask for more: what is left lasts for a quarter of a
// second, and the answer takes some milliseconds.
func (t *tokens) low(now time.Time) bool {
	ahead := t.ahead(now)
	return t.leased < ahead && t.leased*4 <= ahead && !now.Before(t.emptyUntil)
}

// write writes the ask down that is about to go.
func (t *tokens) write(now time.Time) store.TokenAsk {
	t.expire(now)
	t.ask.sent, t.ask.owed = now, t.owed
	return store.TokenAsk{
		Key: t.key, PerMinute: t.perMinute, Needed: t.waiting, Ahead: max(0, t.ahead(now)-t.leased), Owed: t.owed,
	}
}

// answered takes in the answer to the ask that was under way, if there is one.
func (t *tokens) answered(g store.TokenGrant, err error, now time.Time) {
	a := t.ask
	t.ask = nil
	a.err = err
	close(a.done)
	if err != nil {
		// Maybe it was done all the same. Nothing is given back twice.
		t.owed = max(t.owed, t.owed-a.owed)
		return
	}
	t.expire(now)
	t.owed -= a.owed
	t.leased += g.Granted
	// From before the database decided. Those that were left are spent first.
	t.until = a.sent.Add(leaseTime)
	// Who was granted one and had gone on alone has spent it.
	paid := max(0, min(t.owed, t.leased))
	t.owed, t.leased = t.owed-paid, t.leased-paid
	t.fullAt = now.Add(t.flow(g.Missing))
	t.emptyUntil = time.Time{}
	if lacking := 1 - (float64(t.perMinute) - g.Missing); lacking > 0 {
		t.emptyUntil = now.Add(min(max(t.flow(lacking), emptyAtLeast), emptyAtMost))
	}
}

// decideAlone decides by what the process knows, because the database doesn't tell.
func (t *tokens) decideAlone(now time.Time, why error) RateLimit {
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

// left is what the bucket holds, with what this process has of it.
func (t *tokens) left(now time.Time) float64 {
	full := float64(t.perMinute)
	missing := max(0, t.fullAt.Sub(now).Seconds()*t.rate())
	return min(full, max(0, full-missing+float64(t.leased-t.owed)))
}

func (t *tokens) tell(ok bool, now time.Time) RateLimit {
	left := t.left(now)
	if !ok {
		// Less than a token: that is why.
		left = min(left, 0.99)
	}
	return RateLimit{OK: ok, PerMinute: t.perMinute, Left: left, At: now}
}

// rate is what flows into the bucket in a second, flow how long so many tokens take.
func (t *tokens) rate() float64 { return float64(t.perMinute) / 60 }

func (t *tokens) flow(n float64) time.Duration {
	return time.Duration(n / t.rate() * float64(time.Second))
}
