package fairness

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"earshot/internal/change"
	"earshot/internal/publicid"
)

// manyStreams is the number of streams at which the queue begins to remove idle ones.
const manyStreams = 1000

// Queue holds the deliveries that wait for their start. Organizations take turns, and so do the
// streams of an organization. 100,000 deliveries of one organization therefore don't delay those of
// another. The caller's lock guards the queue.
type Queue struct {
	rules rules
	// backlogs belong to the organizations with waiting deliveries, in the order of their turns.
	backlogs []*backlog
	of       map[publicid.Organization]*backlog
	size     int
	// streams also holds empty streams, for as long as their rate matters.
	streams map[streamKey]*stream
	// sweepAt is the number of streams that triggers the next removal of idle ones.
	sweepAt int
}

// backlog holds the waiting deliveries of one organization.
type backlog struct {
	organization publicid.Organization
	// streams are the non-empty streams, in the order of their turns.
	streams []*stream
	size    int
}

// streamKey identifies a stream among those of all organizations.
type streamKey struct {
	organization publicid.Organization
	eventType    string
	// lagging is true for deliveries to lagging webhooks.
	lagging bool
}

// stream holds the deliveries with the same key, in the order of their arrival.
type stream struct {
	streamKey
	waiting []change.PendingDelivery
	single  *rate.Limiter
	// exceeded is the last time at which deliveries came faster than the rate of single starts.
	exceeded time.Time
	// next is the earliest start of a group that isn't full.
	next time.Time
}

// NewQueue makes an empty queue.
func NewQueue() *Queue { return newQueue(production()) }

func newQueue(r rules) *Queue {
	return &Queue{rules: r, of: map[publicid.Organization]*backlog{}, streams: map[streamKey]*stream{}, sweepAt: manyStreams}
}

// Size is the number of waiting deliveries.
func (q *Queue) Size() int { return q.size }

// Add puts a delivery into the queue and reports whether there was room. An organization may have
// as many deliveries waiting as there is room left. Alone it fills half of the queue, and the next
// organization can still fill half of the rest.
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

// isIdle reports whether a new stream could replace this one.
func (q *Queue) isIdle(s *stream, now time.Time) bool {
	return len(s.waiting) == 0 && s.single.TokensAt(now) >= float64(q.rules.singleBurst) && !s.next.After(now)
}

// Take removes the next group of at most the given number of deliveries. A group has one event
// type, because the type is a single search attribute. An organization with enough deliveries for a
// full group gets its own group. The others share one, because many small organizations would
// otherwise need a workflow each. If no group is due, Take returns nil and the wait for the first
// group. The wait is 0 if the queue is empty.
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
	// The organization whose turn it was moves to the end. Organizations that shared its group keep
	// their turns.
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

// cut removes up to the given number of deliveries from a stream. The stream moves to the end of
// its organization's turns, or loses its turn if it is empty.
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

// due returns the first stream, in turns, that has a full group or whose next start is due. Without
// such a stream it returns the wait for the first one.
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
