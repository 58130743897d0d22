package dispatch

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

const (
	// A workflow costs Temporal some 10 ms of processor time, a delivery more in its
	// group a tenth of one. So what comes at more than lightRate a second, once
	// lightBurst are used up, gathers for gatherTime between two starts: 25 groups a
	// second. All else starts at once, and doesn't wait behind it.
	lightRate  = 60
	lightBurst = 10
	gatherTime = 40 * time.Millisecond
	// What goes to a webhook that lags gathers for longer, however little it is: it waits
	// for its receiver anyway, and leaves Temporal to those who don't. Not for much longer,
	// because a group's attempts are made at once and keep the processors from others.
	lagTime = 400 * time.Millisecond
	// How long a line counts as crowded after it was.
	crowdedFor = time.Second
	// Paces that are kept before those are looked for that nobody needs any more.
	manyPaces = 1000
)

// queue has the deliveries that wait for their start. Organizations take turns, so
// that 100,000 of one hold up none of another's, and in an organization its event
// types do. Who uses it holds the dispatcher's lock.
type queue struct {
	// turns are of the organizations that have something waiting; the first is next.
	turns []*turn
	of    map[publicid.Organization]*turn
	size  int
	// paces are of the lines, and outlive them.
	paces     map[paceOf]*pace
	lookAgain int
}

// turn is one organization's.
type turn struct {
	organization publicid.Organization
	// lines are of one event type each and never empty; the first is next.
	lines []*line
	size  int
}

// line has its deliveries in the order in which they came.
type line struct {
	lineOf
	waiting []feedback.Dispatch
	pace    *pace
}

// lineOf is what the deliveries of a line, and of a group, have in common.
type lineOf struct {
	eventType string
	lags      bool
}

type paceOf struct {
	organization publicid.Organization
	lineOf
}

// pace tells whether a line is crowded, and when its next group is due if it is.
type pace struct {
	light   *rate.Limiter
	crowded time.Time
	next    time.Time
}

func newQueue() *queue {
	return &queue{of: map[publicid.Organization]*turn{}, paces: map[paceOf]*pace{}, lookAgain: manyPaces}
}

// add reports whether there was room. An organization may have waiting as much as
// there is room left for all: alone it fills half of the queue, and however many
// others do so too, the next one finds some. What lags goes to a webhook that does.
func (q *queue) add(d feedback.Dispatch, lags bool, now time.Time) bool {
	t := q.of[d.Organization]
	if t == nil {
		t = &turn{organization: d.Organization}
	}
	if t.size >= maxWaiting-q.size {
		return false
	}
	if t.size == 0 {
		q.of[d.Organization] = t
		q.turns = append(q.turns, t)
	}
	of := lineOf{d.EventType, lags}
	l := t.line(of)
	if l == nil {
		l = &line{lineOf: of, pace: q.pace(paceOf{d.Organization, of}, now)}
		t.lines = append(t.lines, l)
	}
	if !l.pace.light.AllowN(now, 1) {
		l.pace.crowded = now
	}
	l.waiting = append(l.waiting, d)
	t.size++
	q.size++
	return true
}

func (q *queue) pace(of paceOf, now time.Time) *pace {
	p := q.paces[of]
	if p == nil {
		if len(q.paces) >= q.lookAgain {
			maps.DeleteFunc(q.paces, func(_ paceOf, p *pace) bool { return p.light.TokensAt(now) >= lightBurst })
			q.lookAgain = max(manyPaces, 2*len(q.paces))
		}
		p = &pace{light: rate.NewLimiter(lightRate, lightBurst)}
		q.paces[of] = p
	}
	return p
}

func (t *turn) line(of lineOf) *line {
	for _, l := range t.lines {
		if l.lineOf == of {
			return l
		}
	}
	return nil
}

// take cuts the next group off: at most so many deliveries of one event type, because
// that is one search attribute. An organization with enough for a group has it for
// itself; those with less share one. When nothing is due it returns nil, and how long to
// wait for the first that is, or 0 when nothing waits.
func (q *queue) take(most int, now time.Time) (group []feedback.Dispatch, wait time.Duration) {
	first, l, wait := q.due(most, now)
	if l == nil {
		return nil, wait
	}
	group = l.cut(most)
	switch {
	case l.lags:
		l.pace.next = now.Add(lagTime)
	case now.Sub(l.pace.crowded) < crowdedFor:
		l.pace.next = now.Add(gatherTime)
	}
	first.lines = append(slices.DeleteFunc(first.lines, func(other *line) bool { return other == l }), l)
	for _, t := range q.turns {
		if len(group) == most {
			break
		}
		if other := t.line(l.lineOf); t != first && other != nil && len(other.waiting) < most {
			group = append(group, other.cut(most-len(group))...)
		}
	}
	q.turns = append(slices.DeleteFunc(q.turns, func(t *turn) bool { return t == first }), first)
	q.tidy(group)
	return group, 0
}

// due is the first line, in turns, that has a full group or need not gather any more.
func (q *queue) due(most int, now time.Time) (_ *turn, _ *line, wait time.Duration) {
	for _, t := range q.turns {
		for _, l := range t.lines {
			left := l.pace.next.Sub(now)
			if left <= 0 || len(l.waiting) >= most {
				return t, l, 0
			}
			if wait == 0 || left < wait {
				wait = left
			}
		}
	}
	return nil, nil, wait
}

func (l *line) cut(most int) []feedback.Dispatch {
	n := min(most, len(l.waiting))
	group := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return group
}

// tidy forgets what was taken, and whoever has nothing left.
func (q *queue) tidy(taken []feedback.Dispatch) {
	q.size -= len(taken)
	for _, d := range taken {
		q.of[d.Organization].size--
	}
	for _, d := range taken {
		if t := q.of[d.Organization]; t != nil {
			t.lines = slices.DeleteFunc(t.lines, func(l *line) bool { return len(l.waiting) == 0 })
			if t.size == 0 {
				delete(q.of, d.Organization)
			}
		}
	}
	q.turns = slices.DeleteFunc(q.turns, func(t *turn) bool { return t.size == 0 })
}
