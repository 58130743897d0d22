package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-faster/errors"
)

const (
	// A cut lasts from where nobody's timeout has ended yet to where all have: that of
	// a statement is 5 s.
	shortestCut = time.Second
	longestCut  = 7 * time.Second
	// progressEvery is how often a run says how far it is.
	progressEvery = 10 * time.Second
)

// fault is something that is done to a stack; it returns when that is over.
type fault func(ctx context.Context) error

// deck are the faults, each once. A run deals from shuffled decks, so that chance
// decides the order and none is left out.
func (r *run) deck() []fault {
	s := r.stack
	kill := func(p *service) fault {
		return func(ctx context.Context) error { return s.killService(ctx, r.kills, p) }
	}
	cutting := func(c cut) fault {
		return func(ctx context.Context) error {
			during := shortestCut + rand.N(longestCut-shortestCut)
			return s.cutFor(ctx, r.kills, s.anyLink(), c, during)
		}
	}
	return []fault{
		kill(s.api()), kill(s.workers()[0]), kill(s.workers()[1]),
		func(ctx context.Context) error { return s.killPostgres(ctx, r.kills) },
		func(ctx context.Context) error { return s.killTemporal(ctx, r.kills) },
		cutting(refused), cutting(silent),
	}
}

// anyLink is a link of the service's, by chance.
func (s *stack) anyLink() link {
	var of []link
	for _, l := range s.links {
		if l.from != harnessLink {
			of = append(of, l)
		}
	}
	return of[rand.IntN(len(of))]
}

// random writes the events of a run while faults come by chance.
func (r *run) random(ctx context.Context, f *figures) error {
	began, first := time.Now(), len(r.load.acknowledged())
	killing, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- r.faultsUntil(killing)
		stop()
	}()
	go r.tell(killing)
	err := r.load.until(killing, r.options.events)
	f.RandomTime = time.Since(began)
	stop()
	if failed := <-ended; failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.RandomEvents = len(r.load.acknowledged()) - first
	return err
}

// faultsUntil deals faults, one each time, until the context ends; the one that is
// under way then is finished. One that takes longer is followed by the next at once.
func (r *run) faultsUntil(ctx context.Context) error {
	finishing := context.WithoutCancel(ctx)
	next := time.Now()
	for {
		hand := r.deck()
		rand.Shuffle(len(hand), func(i, j int) { hand[i], hand[j] = hand[j], hand[i] })
		for _, do := range hand {
			next = next.Add(r.options.killEvery)
			if err := pause(ctx, time.Until(next)); err != nil {
				return nil //nolint:nilerr // the run is over
			}
			if err := do(finishing); err != nil {
				return errors.Wrap(err, "after a fault")
			}
		}
	}
}

// tell says how far a run is.
func (r *run) tell(ctx context.Context) {
	for pause(ctx, progressEvery) == nil {
		r.report("%d of %d events, %d pending, %d faults",
			r.load.next.Load()-r.load.base.Load(), r.options.events, r.load.pending.Load(), len(r.kills.list()))
	}
}
