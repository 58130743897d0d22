package activities

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"earshot/internal/publicid"
)

const (
	// Attempts in flight to one webhook from one process: a whole group of 60
	// finds room at once. A receiver that answers in 10 ms takes 6,400 a second
	// through 64; one that hangs holds 64.
	perWebhook = 64
	// Places that turns are given away for; the others are for what is new meanwhile.
	turnPlaces = 48
	// For how long an attempt is taken to have its place before one has ended: as long
	// as the first who were put off waited in vain.
	assumed = firstWait
	// The budget of retries to one webhook from one process, 100 a second, as much as a
	// recovery sends: who has just come back isn't knocked down by what fell due
	// together.
	retryStep = 10 * time.Millisecond
	// How long a failure counts at most: a receiver that is back lags no longer than that.
	remembered = time.Minute
	// A webhook lags whose attempts failed more often than this, one after the other. As
	// many as a delivery has: those may be the fault of that event.
	failedInARow = 5
	// How far ahead moments are given away. What comes behind waits for a part of that
	// and asks again, so that a receiver which comes back gets everything within it.
	furthest = 10 * time.Minute
)

// slots bounds the attempts that are in flight to each webhook, so that one
// receiver that hangs can't hold what the others need, and gives each of those that
// must wait a time of its own.
type slots struct {
	perWebhook int64

	mu   sync.Mutex
	held map[publicid.Webhook]*slot
}

type slot struct {
	sem *semaphore.Weighted
	// users counts who holds a place or waits for one, and the moments given away; the
	// entry goes with the last of them.
	users int
	// took is for how long an attempt has its place, on average; 0 before one ended.
	took time.Duration
	// failed counts the attempts that did since one succeeded.
	failed int
	// turns are of those who found no place, retries of failed attempts, by the number
	// of the one that follows.
	turns   pace
	retries map[int]*pace
}

func newSlots(perWebhook int64) *slots {
	return &slots{perWebhook: perWebhook, held: map[publicid.Webhook]*slot{}}
}

// acquire waits for a place until the context ends, and returns the function that gives it
// back, or nil. That function is told whether the time counts as an attempt's.
func (s *slots) acquire(ctx context.Context, webhook publicid.Webhook) (release func(attempted bool)) {
	own := s.enter(webhook)
	// A free place is taken however short the wait.
	if !own.sem.TryAcquire(1) && own.sem.Acquire(ctx, 1) != nil {
		s.leave(webhook, own)
		return nil
	}
	began := time.Now()
	return func(attempted bool) {
		own.sem.Release(1)
		if attempted {
			s.ended(own, time.Since(began))
		}
		s.leave(webhook, own)
	}
}

// patience is how long a first attempt may wait for a place: not at all behind those
// whose turn comes later than that.
func (s *slots) patience(webhook publicid.Webhook) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.held[webhook]; own != nil && time.Until(own.turns.next) > firstWait {
		return 0
	}
	return firstWait
}

// answered notes how an attempt ended that has its place still.
func (s *slots) answered(webhook publicid.Webhook, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.held[webhook]
	own.failed++
	if ok {
		own.failed = 0
	}
}

// lags tells a webhook whose attempts fail one after the other, or that has more before it
// than it has places: in flight, put off, or to be made again.
func (s *slots) lags(webhook publicid.Webhook) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.held[webhook]
	return own != nil && (own.failed > failedInARow || int64(own.users) > s.perWebhook)
}

func (s *slots) enter(webhook publicid.Webhook) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.held[webhook]
	if own == nil {
		own = &slot{sem: semaphore.NewWeighted(s.perWebhook), retries: map[int]*pace{}}
		s.held[webhook] = own
	}
	own.users++
	return own
}

func (s *slots) leave(webhook publicid.Webhook, own *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.held, webhook)
	}
}

func (s *slots) ended(own *slot, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Of the last eight or so: a receiver that comes back is soon known to be fast.
	own.took = cmp.Or(own.took, took)
	own.took += (took - own.took) / 8
}

// turn is how long n attempts wait together that found no place: until as many places
// are given back, at the pace of the receiver. Each takes at least a step. They come back
// as a group in the lane of later attempts, which has room for a few.
func (s *slots) turn(webhook publicid.Webhook, n int, step time.Duration) time.Duration {
	places := time.Duration(min(turnPlaces, n*laneOfWebhook))
	return s.give(webhook, 0, func(own *slot, now time.Time) time.Duration {
		each := max(step, cmp.Or(own.took, assumed)/places)
		return own.turns.take(now, time.Duration(n)*each)
	})
}

// retry is how much later than due an attempt of that number is to be made: each webhook's go
// one after the other, at the pace of its budget.
func (s *slots) retry(webhook publicid.Webhook, number int, due time.Duration) (late time.Duration) {
	return s.give(webhook, min(due, remembered), func(own *slot, now time.Time) time.Duration {
		if own.retries[number] == nil {
			own.retries[number] = &pace{}
		}
		return own.retries[number].take(now.Add(due), retryStep)
	}) - retryStep
}

// give gives a moment away. It keeps the entry until then, and for so much longer: who
// comes later starts anew.
func (s *slots) give(webhook publicid.Webhook, longer time.Duration, take func(*slot, time.Time) time.Duration) time.Duration {
	own := s.enter(webhook)
	s.mu.Lock()
	wait := take(own, time.Now())
	s.mu.Unlock()
	time.AfterFunc(wait+longer, func() { s.leave(webhook, own) })
	return wait
}

// pace gives moments away, one after the other.
type pace struct{ next time.Time }

// take returns how long after from the caller's moment ends, which takes so long. When
// all are given away that are near enough, it is drawn by lot, and to ask again is up to the
// caller.
func (p *pace) take(from time.Time, step time.Duration) time.Duration {
	end := from
	if p.next.After(from) {
		end = p.next
	}
	end = end.Add(step)
	if end.Sub(from) > furthest {
		return spread(furthest / 2)
	}
	p.next = end
	return end.Sub(from)
}

// spread is once to twice as long, drawn by lot, so that who waits together doesn't come back
// together.
func spread(d time.Duration) time.Duration { return d + rand.N(d) } //nolint:gosec // not a secret
