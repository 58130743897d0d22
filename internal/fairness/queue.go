package fairness

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"earshot/internal/change"
	"earshot/internal/publicid"
)

// From so many streams on, those are looked for that can be forgotten.
const manyStreams = 1000

// Queue holds the deliveries that wait for their start. Organizations take turns, so that
// 100,000 deliveries of one don't hold up those of another, and so do the streams of an
// organization. Its user's lock guards it.
type Queue struct {
	rules rules
	// backlogs are those of the organizations that have deliveries waiting, in the order
	// of their turns.
	backlogs []*backlog
	of       map[publicid.Organization]*backlog
	size     int
	// streams are kept while they are empty, for as long as their rate matters.
	streams map[streamKey]*stream
	// sweepAt is the number of streams from which on the next look is for old ones.
	sweepAt int
}

// backlog is what one organization has waiting.
type backlog struct {
	organization publicid.Organization
	// streams that aren't empty, in the order of their turns.
	streams []*stream
	size    int
}

// streamKey tells the streams of all organizations apart.
type streamKey struct {
	organization publicid.Organization
	eventType    string
	// lagging says that the deliveries go to webhooks that lag.
	lagging bool
}

// stream has the deliveries with the same key, in the order in which they came.
type stream struct {
	streamKey
	waiting []change.PendingDelivery
	single  *rate.Limiter
	// exceeded is when more came than the rate of single starts allows.
	exceeded time.Time
	// next is the earliest start of a group that isn't full.
	next time.Time
}

// NewQueue makes one that is empty.
func NewQueue() *Queue { return newQueue(production()) }

func newQueue(r rules) *Queue {
	return &Queue{rules: r, of: map[publicid.Organization]*backlog{}, streams: map[streamKey]*stream{}, sweepAt: manyStreams}
}

// Size is how many wait.
func (q *Queue) Size() int { return q.size }

// Add reports whether there was room. An organization may have as much waiting as there
// is room left: alone it fills half of the queue, and whoever comes next still finds half
// of what is left.
func (q *Queue) Add(d change.PendingDelivery, lagging bool, now time.Time) bool {
	b := q.of[d.Organization]
	if b == nil {
		b = &backlog{organization: d.Organization}
	}
	if b.size >= q.rules.maxWaiting-q.size {
		return false
	}
	if b.size == 0 {
		q.of[d.Organization] = b
		q.backlogs = append(q.backlogs, b)
	}
	s := q.stream(streamKey{d.Organization, d.EventType, lagging}, now)
	if len(s.waiting) == 0 {
		b.streams = append(b.streams, s)
	}
	if !s.single.AllowN(now, 1) {
		s.exceeded = now
	}
	s.waiting = append(s.waiting, d)
	b.size++
	q.size++
	return true
}

func (q *Queue) stream(key streamKey, now time.Time) *stream {
	s := q.streams[key]
	if s == nil {
		if len(q.streams) >= q.sweepAt {
			maps.DeleteFunc(q.streams, func(_ streamKey, s *stream) bool { return q.isIdle(s, now) })
			q.sweepAt = max(manyStreams, 2*len(q.streams))
		}
		s = &stream{streamKey: key, single: rate.NewLimiter(q.rules.singleRate, q.rules.singleBurst)}
		q.streams[key] = s
	}
	return s
}

// isIdle tells a stream that a new one can replace.
func (q *Queue) isIdle(s *stream, now time.Time) bool {
	return len(s.waiting) == 0 && s.single.TokensAt(now) >= float64(q.rules.singleBurst) && !s.next.After(now)
}

// Take removes the next group, of at most so many deliveries. It is of one event type,
// because that is one search attribute. An organization with enough for a group has it for
// itself; those with less share one, because otherwise many small organizations would need a
// workflow each. When no group is due, take returns nil and how long to wait for the first
// that is, or 0 when nothing waits.
func (q *Queue) Take(most int, now time.Time) (group []change.PendingDelivery, wait time.Duration) {
	first, wait := q.due(most, now)
	if first == nil {
		return nil, wait
	}
	switch {
	case first.lagging:
		first.next = now.Add(q.rules.laggingInterval)
	case now.Sub(first.exceeded) < q.rules.busyFor:
		first.next = now.Add(q.rules.busyInterval)
	}
	group = q.cut(first, most)
	for _, b := range q.backlogs {
		if len(group) == most {
			break
		}
		key := first.streamKey
		key.organization = b.organization
		if s := q.streams[key]; s != nil && s != first && len(s.waiting) > 0 && len(s.waiting) < most {
			group = append(group, q.cut(s, most-len(group))...)
		}
	}
	// Whose turn it was comes last from here on. Who shared its group keeps its turn.
	own := q.of[first.organization]
	q.backlogs = append(without(q.backlogs, own), own)
	for _, d := range group {
		if b := q.of[d.Organization]; b != nil && b.size == 0 {
			delete(q.of, d.Organization)
		}
	}
	q.backlogs = slices.DeleteFunc(q.backlogs, func(b *backlog) bool { return b.size == 0 })
	return group, 0
}

// cut removes up to so many deliveries from a stream, which goes to the end of its
// organization's turns, or loses its turn when it is empty.
func (q *Queue) cut(s *stream, most int) []change.PendingDelivery {
	b, n := q.of[s.organization], min(most, len(s.waiting))
	group := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	b.streams = without(b.streams, s)
	if len(s.waiting) > 0 {
		b.streams = append(b.streams, s)
	} else {
		s.waiting = nil
	}
	b.size -= n
	q.size -= n
	return group
}

// due is the first stream, in turns, that has a full group or whose next start is due.
func (q *Queue) due(most int, now time.Time) (_ *stream, wait time.Duration) {
	for _, b := range q.backlogs {
		for _, s := range b.streams {
			left := s.next.Sub(now)
			if left <= 0 || len(s.waiting) >= most {
				return s, 0
			}
			if wait == 0 || left < wait {
				wait = left
			}
		}
	}
	return nil, wait
}

func without[T comparable](all []T, one T) []T {
	at := slices.Index(all, one)
	return slices.Delete(all, at, at+1)
}
