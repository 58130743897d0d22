package workflows

import (
	"slices"

	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

// queue has the deliveries that wait for their start. Organizations take turns, so
// that 100,000 of one hold up none of another's, and in an organization its event
// types do. Who uses it holds the starter's lock.
type queue struct {
	// turns are of the organizations that have something waiting; the first is next.
	turns []*turn
	of    map[publicid.Organization]*turn
	size  int
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
	eventType string
	waiting   []feedback.Dispatch
}

func newQueue() *queue { return &queue{of: map[publicid.Organization]*turn{}} }

// add reports whether there was room. An organization may have waiting as much as
// there is room left for all: alone it fills half of the queue, and however many
// others do so too, the next one finds some.
func (q *queue) add(d feedback.Dispatch) bool {
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
	l := t.line(d.EventType)
	if l == nil {
		l = &line{eventType: d.EventType}
		t.lines = append(t.lines, l)
	}
	l.waiting = append(l.waiting, d)
	t.size++
	q.size++
	return true
}

func (t *turn) line(eventType string) *line {
	for _, l := range t.lines {
		if l.eventType == eventType {
			return l
		}
	}
	return nil
}

// take cuts the next group off: at most so many deliveries of one event type, because
// that is one search attribute. An organization with enough for a group has it for
// itself; those with less share one. It returns nil when nothing waits.
func (q *queue) take(most int) []feedback.Dispatch {
	if q.size == 0 {
		return nil
	}
	first := q.turns[0]
	l := first.lines[0]
	group := l.cut(most)
	first.lines = append(first.lines[1:], l)
	for _, t := range q.turns[1:] {
		if len(group) == most {
			break
		}
		if l := t.line(group[0].EventType); l != nil && len(l.waiting) < most {
			group = append(group, l.cut(most-len(group))...)
		}
	}
	q.turns = append(q.turns[1:], first)
	q.tidy(group)
	return group
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
