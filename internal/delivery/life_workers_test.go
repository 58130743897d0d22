package delivery_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/delivery"
)

// lifeAttempt is an attempt in flight. It is claimed, and answered once there is a result.
type lifeAttempt struct {
	worker int
	run    *lifeRun // receives the result; nil if it is gone
	row    *lifeRow
	number int
	start  int
	// lease is the end of the lease in the model's time, and token is the value in the row.
	lease    time.Time
	token    time.Time
	enabled  bool
	answered bool
	result   delivery.Result
}

// claim asks for the attempts of due runs in one statement. Several runs may ask for the same
// delivery.
func (l *life) claim(t *rapid.T) {
	now := l.now()
	asking := some(t, "runs that are due", where(l.runs, func(r *lifeRun) bool { return !r.busy && !r.due.After(now) }))
	worker := rapid.IntRange(0, 1).Draw(t, "worker")
	claims := make([]delivery.Claim, len(asking))
	for i, r := range asking {
		claims[i] = delivery.Claim{ID: r.row.id, Number: r.number, WorkflowID: r.workflow, RunID: r.id, Lease: lifeLease}
	}
	answers, err := delivery.ClaimAll(l.ctx, l.store, claims)
	require.NoError(t, err)
	require.Len(t, answers, len(claims))
	granted := map[*lifeRow]int{}
	for i, r := range asking {
		if answers[i].Granted {
			granted[r.row]++
		}
	}
	type state struct {
		claimable bool
		attempts  int
		due       time.Time
		lease     time.Time
	}
	before := map[*lifeRow]state{}
	for _, r := range asking {
		before[r.row] = state{r.row.claimable(now), len(r.row.attempts), r.row.due, r.row.lease}
	}
	eligible := map[*lifeRow]bool{}
	for i, r := range asking {
		was, got := before[r.row], answers[i]
		mayBe := was.claimable && r.number == was.attempts+1
		t.Logf("%s asks for attempt %d of delivery %d: %s", r.id, r.number, r.row.n, inWords(got))
		eligible[r.row] = eligible[r.row] || mayBe
		switch {
		case !r.row.pending():
			require.True(t, got.Gone && !got.Granted && !got.Wait, "a delivery that has ended is attempted no more")
			l.sameEnd(t, r.row, got.Ended)
			l.end(r)
		case got.Granted:
			require.True(t, mayBe, "attempt %d was granted after %d, claimable: %v", r.number, was.attempts, was.claimable)
			l.grant(t, worker, r, got, now)
		default:
			require.True(t, got.Wait && !got.Gone, "a delivery that is pending is to be attempted later")
			require.Equal(t, was.attempts+1, got.Attempt, "the number to ask for")
			in := max(0, was.due.Sub(now))
			switch {
			case mayBe:
				in = lifeLease
			case r.number == was.attempts+1:
				in = was.lease.Sub(now)
			}
			require.InDelta(t, in.Seconds(), got.Delay.Seconds(), lifeSlack.Seconds(), "when to ask")
			r.number, r.due = got.Attempt, now.Add(got.Delay)
		}
	}
	for row, may := range eligible {
		require.Equal(t, may, granted[row] == 1, "an attempt that nobody makes is granted, to one")
	}
}

func (l *life) sameEnd(t *rapid.T, r *lifeRow, got *delivery.Ended) {
	if !r.there() {
		require.Nil(t, got)
		return
	}
	require.Equal(t, &delivery.Ended{
		Failed: r.status == "failed", Attempts: len(r.attempts), Response: r.response, Error: r.failure,
	}, got)
}

func (l *life) grant(t *rapid.T, worker int, r *lifeRun, got delivery.Claimed, now time.Time) {
	for _, a := range l.attempts {
		require.False(t, a.row == r.row && a.lease.After(now), "two attempts at once, and the first one's lease lives")
	}
	require.Less(t, len(r.row.attempts)-r.row.start, len(l.delays)+1, "one attempt too many")
	require.Equal(t, r.row.payload, got.Payload)
	require.Equal(t, r.row.eventType, got.EventType)
	require.Equal(t, r.row.hook.id, got.Webhook)
	require.Equal(t, r.row.hook.enabled, got.Enabled)
	require.Equal(t, r.row.start, got.ScheduleStart)
	r.row.lease, r.row.workflow, r.row.run = now.Add(lifeLease), r.workflow, r.id
	r.busy = true
	l.attempts = append(l.attempts, &lifeAttempt{
		worker: worker, run: r, row: r.row, number: r.number, start: got.ScheduleStart, lease: r.row.lease, token: got.Lease,
		enabled: got.Enabled,
	})
}

// answer makes receivers respond. An attempt ends before its lease does.
func (l *life) answer(t *rapid.T) {
	now := l.now()
	for _, a := range some(t, "attempts", where(l.attempts, func(a *lifeAttempt) bool { return !a.answered && a.lease.After(now) })) {
		a.answered = true
		if !a.enabled {
			a.result = delivery.Result{ID: a.row.id, Error: "webhook_disabled"}
			continue
		}
		a.result = delivery.Result{ID: a.row.id, Number: a.number, StartedAt: startedAt, Duration: time.Second}
		switch rapid.SampledFrom([]string{"500", "204", "no answer"}).Draw(t, "answer") {
		case "204":
			a.result.Response = 204
			continue
		case "500":
			a.result.Response, a.result.Error = 500, "http_status"
		default:
			a.result.Error = "timeout"
		}
		if n := a.number - a.start; n <= len(l.delays) {
			a.result.Retry = &l.delays[n-1]
		}
		a.result.Counts = l.countAttempts || a.result.Retry == nil
	}
}

// record writes results in one statement. The worker may die before its runs receive them. The
// statement may be repeated, because its answer was lost.
func (l *life) record(t *rapid.T) {
	some := some(t, "answers", where(l.attempts, func(a *lifeAttempt) bool { return a.answered }))
	results := make([]delivery.Result, len(some))
	for i, a := range some {
		results[i] = a.result
		results[i].Lease = a.token
	}
	for _, a := range some {
		t.Logf("worker %d records attempt %d of delivery %d: status %d, error %q", a.worker, a.number, a.row.n, a.result.Response, a.result.Error)
	}
	times := 1
	if rapid.IntRange(0, 4).Draw(t, "its answer is lost at 4") == 4 {
		times = 2
	}
	streaks := false
	for range times {
		moved, err := delivery.Record(l.ctx, l.store, results)
		require.NoError(t, err)
		require.Equal(t, l.recorded(some), moved, "which outcomes moved their webhook's streak")
		streaks = streaks || slices.Contains(moved, true)
	}
	if streaks && rapid.IntRange(0, 3).Draw(t, "the signal of the streak is lost at 3") < 3 {
		l.followStreaks(t)
	}
	heard := rapid.IntRange(0, 4).Draw(t, "nobody hears of it at 4") < 4
	for _, a := range some {
		l.attempts = where(l.attempts, func(other *lifeAttempt) bool { return other != a })
		if a.run == nil {
			continue
		}
		a.run.busy, a.run.due = false, l.now()
		switch {
		case !heard: // Temporal repeats the activity
		case a.result.Retry != nil:
			a.run.number, a.run.due = a.number+1, l.now().Add(*a.result.Retry)
		default:
			l.end(a.run)
		}
	}
}

// recorded applies the results to the model in their order and reports which of them changed a
// streak.
func (l *life) recorded(of []*lifeAttempt) []bool {
	now := l.now()
	counted := make([]bool, len(of))
	had := map[*lifeHook]int{}
	for i, a := range of {
		r := a.row
		if !r.pending() || !r.lease.Equal(a.lease) || a.number != len(r.attempts)+1 {
			continue
		}
		counted[i] = true
		if _, ok := had[r.hook]; !ok {
			had[r.hook] = r.hook.failures
		}
		if a.result.Number > 0 {
			r.attempts = append(r.attempts, lifeOutcome{a.result.Response, a.result.Error})
			r.response = a.result.Response
		}
		r.failure, r.lease, r.due = a.result.Error, time.Time{}, time.Time{}
		switch {
		case a.result.Error == "":
			r.status, r.hook.failures = "succeeded", 0
		case a.result.Retry != nil:
			r.due = now.Add(*a.result.Retry)
		default:
			r.status = "failed"
		}
		if a.result.Counts {
			r.hook.failures++
		}
	}
	return l.moved(of, counted, had)
}

// moved reports the results whose webhook row was written: it has failures now, or it had some and
// has none.
func (l *life) moved(of []*lifeAttempt, counted []bool, had map[*lifeHook]int) []bool {
	failed, succeeded := map[*lifeHook]bool{}, map[*lifeHook]bool{}
	for i, a := range of {
		if counted[i] {
			ok := a.result.Error == ""
			succeeded[a.row.hook] = succeeded[a.row.hook] || ok
			failed[a.row.hook] = !ok && (failed[a.row.hook] || a.result.Counts)
		}
	}
	moved := make([]bool, len(of))
	for i, a := range of {
		h := a.row.hook
		moved[i] = counted[i] && (failed[h] || succeeded[h] && had[h] > 0)
	}
	return moved
}

// die kills a worker with all its attempts in flight. Temporal repeats its activities.
func (l *life) die(t *rapid.T) {
	worker := rapid.IntRange(0, 1).Draw(t, "worker")
	for _, a := range l.attempts {
		if a.worker == worker && a.run != nil {
			a.run.busy, a.run.due = false, l.now()
		}
	}
	l.attempts = where(l.attempts, func(a *lifeAttempt) bool { return a.worker != worker })
}

// miss makes Temporal consider an activity dead although its worker lives. Temporal repeats the
// activity and ignores the result of the first one.
func (l *life) miss(t *rapid.T) {
	a := one(t, "attempts", where(l.attempts, func(a *lifeAttempt) bool { return a.run != nil }))
	a.run.busy, a.run.due = false, l.now()
	a.run = nil
}

// putOff postpones an attempt that is due, as if the webhook had no free slot.
func (l *life) putOff(t *rapid.T) {
	now := l.now()
	r := one(t, "runs that are due", where(l.runs, func(r *lifeRun) bool { return !r.busy && !r.due.After(now) }))
	delay := time.Duration(rapid.IntRange(5, 20).Draw(t, "minutes")) * time.Minute
	err := delivery.PutOffAll(l.ctx, l.store, r.workflow, r.id, []delivery.PutOff{{ID: r.row.id, Number: r.number, Delay: delay}})
	require.NoError(t, err)
	r.due = now.Add(delay)
	if r.row.claimable(now) && r.number == len(r.row.attempts)+1 {
		r.row.due, r.row.workflow, r.row.run = r.due, r.workflow, r.id
	}
}
