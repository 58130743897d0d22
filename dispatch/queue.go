package dispatch

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"earshot/internal/change"
	"earshot/internal/publicid"
)

const (
	// A workflow costs Temporal some 10 ms of processor time, one more delivery in a
	// group a tenth of that. So a stream of more than singleRate deliveries a second,
	// once singleBurst are used up, is busy and starts a group every busyInterval, 25 a
	// second. Any other stream starts each delivery at once.
	singleRate   = 60
	singleBurst  = 10
	busyInterval = 40 * time.Millisecond
	// A stream to webhooks that lag starts a group every laggingInterval, however little
	// it carries: these deliveries wait for their receiver anyway, and fewer workflows
	// leave Temporal to the others. It isn't longer, because the attempts of a group are
	// made at once, and large groups would keep the processors from the others.
	laggingInterval = 400 * time.Millisecond
	// How long a stream counts as busy after it last exceeded its rate.
	busyFor = time.Second
	// From so many streams on, those are looked for that can be forgotten.
	manyStreams = 1000
)

// queue holds the deliveries that wait for their start. Organizations take turns, so that
// 100,000 deliveries of one don't hold up those of another, and so do the streams of an
// organization. The dispatcher's lock guards it.
type queue struct {
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

func newQueue() *queue {
	return &queue{of: map[publicid.Organization]*backlog{}, streams: map[streamKey]*stream{}, sweepAt: manyStreams}
}

// add reports whether there was room. An organization may have as much waiting as there
// is room left: alone it fills half of the queue, and whoever comes next still finds half
// of what is left.
func (q *queue) add(d change.PendingDelivery, lagging bool, now time.Time) bool {
	b := q.of[d.Organization]
	if b == nil {
		b = &backlog{organization: d.Organization}
	}
	if b.size >= maxWaiting-q.size {
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

func (q *queue) stream(key streamKey, now time.Time) *stream {
	s := q.streams[key]
	if s == nil {
		if len(q.streams) >= q.sweepAt {
			maps.DeleteFunc(q.streams, func(_ streamKey, s *stream) bool { return s.isIdle(now) })
			q.sweepAt = max(manyStreams, 2*len(q.streams))
		}
		s = &stream{streamKey: key, single: rate.NewLimiter(singleRate, singleBurst)}
		q.streams[key] = s
	}
	return s
}

// isIdle tells a stream that a new one can replace.
func (s *stream) isIdle(now time.Time) bool {
	return len(s.waiting) == 0 && s.single.TokensAt(now) >= singleBurst && !s.next.After(now)
}

// take removes the next group, of at most so many deliveries. It is of one event type,
// because that is one search attribute. An organization with enough for a group has it for
// itself; those with less share one, because otherwise many small organizations would need a
// workflow each. When no group is due, take returns nil and how long to wait for the first
// that is, or 0 when nothing waits.
func (q *queue) take(most int, now time.Time) (group []change.PendingDelivery, wait time.Duration) {
	first, wait := q.due(most, now)
	if first == nil {
		return nil, wait
	}
	switch {
	case first.lagging:
		first.next = now.Add(laggingInterval)
	case now.Sub(first.exceeded) < busyFor:
		first.next = now.Add(busyInterval)
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
func (q *queue) cut(s *stream, most int) []change.PendingDelivery {
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
func (q *queue) due(most int, now time.Time) (_ *stream, wait time.Duration) {
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
