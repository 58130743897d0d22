package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sync/errgroup"
)

const (
	// A cut lasts from a time within every timeout to a time beyond all of them. The timeout of a
	// statement is 5 s.
	shortestCut = time.Second
	longestCut  = 7 * time.Second
	// cutsEvery is the number of kills for each cut. Most cuts are over by the next one.
	cutsEvery = 2
	// progressEvery is the interval between progress reports.
	progressEvery = 10 * time.Second
)

// fault does something to a stack, and returns when the fault is over.
type fault func(ctx context.Context) error

// killing returns each kind of kill once. A run deals from shuffled decks, so the order is random
// and every kind occurs.
func (r *run) killing() []fault {
	s := r.stack
	kill := func(p *service) fault {
		return func(ctx context.Context) error {
			// A process that starts without its database exits, as it should.
			p.connected.Lock()
			defer p.connected.Unlock()
			return s.killService(ctx, r.kills, p)
		}
	}
	all := []fault{
		func(ctx context.Context) error { return s.killPostgres(ctx, r.kills) },
		func(ctx context.Context) error { return s.killTemporal(ctx, r.kills) },
	}
	for _, p := range s.services {
		all = append(all, kill(p))
	}
	return all
}

// cutting returns each kind of cut once. Each cut picks a random link.
func (r *run) cutting() []fault {
	s := r.stack
	cutting := func(c cut) fault {
		return func(ctx context.Context) error {
			p, l := s.anyLink()
			p.connected.Lock()
			defer p.connected.Unlock()
			longest := max(2*shortestCut, min(longestCut, cutsEvery*r.options.killEvery))
			return s.cutFor(ctx, r.kills, l, c, shortestCut+rand.N(longest-shortestCut))
		}
	}
	return []fault{cutting(refused), cutting(silent)}
}

// anyLink returns a random link of one of the service's processes.
func (s *stack) anyLink() (*service, link) {
	p := s.services[rand.IntN(len(s.services))]
	var of []link
	for _, l := range s.links {
		if l.from == p.name {
			of = append(of, l)
		}
	}
	return p, of[rand.IntN(len(of))]
}

// random writes the events of a run during random faults.
func (r *run) random(ctx context.Context, f *figures) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	began, first := time.Now(), len(r.load.acknowledged())
	loading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- faultsUntil(ctx, loading, r.options.killEvery, r.killing(), r.cutting())
		stop()
	}()
	go r.tell(loading)
	err := r.load.until(loading, r.options.events)
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

// faultsUntil deals kills, and cuts at longer intervals beside them, until the load has ended. It
// deals each at least once. An error of one fault ends the others, because without a server the load
// would never end.
func faultsUntil(ctx, loading context.Context, killEvery time.Duration, kills, cuts []fault) error {
	both, ctx := errgroup.WithContext(ctx)
	loading, stop := context.WithCancel(loading)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	both.Go(func() error { return deal(ctx, loading, killEvery, kills) })
	both.Go(func() error { return deal(ctx, loading, cutsEvery*killEvery, cuts) })
	return both.Wait()
}

// deal deals the faults of a deck again and again, one at each interval. It stops when the load has
// ended and each fault had its turn, and finishes the current fault. After a fault that takes
// longer than the interval, the next one follows immediately.
func deal(ctx, loading context.Context, every time.Duration, deck []fault) error {
	finishing := context.WithoutCancel(ctx)
	next, until := time.Now(), ctx
	for {
		rand.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, do := range deck {
			next = next.Add(every)
			if err := pause(until, time.Until(next)); err != nil {
				return nil //nolint:nilerr // the run is over
			}
			if err := do(finishing); err != nil {
				return errors.Wrap(err, "after a fault")
			}
		}
		until = loading
	}
}

// tell reports the progress of a run.
func (r *run) tell(ctx context.Context) {
	for pause(ctx, progressEvery) == nil {
		r.report("%d of %d events, %d pending, %d faults",
			r.load.next.Load()-r.load.base.Load(), r.options.events, r.load.pending.Load(), len(r.kills.list()))
	}
}
