package main

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/check"
	"earshot/internal/devstack"
)

// kills records the faults of a stack, for the checker.
type kills struct {
	mu  sync.Mutex
	all []check.Kill
}

func (k *kills) add(what string, at, back time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, check.Kill{At: at, What: what, Back: back})
}

// list returns a copy of all faults so far.
func (k *kills) list() []check.Kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]check.Kill{}, k.all...)
}

// killService kills a process and waits until its successor is ready.
func (s *stack) killService(ctx context.Context, k *kills, p *service) error {
	before := p.generation()
	at := p.kill()
	if err := p.awaitReady(ctx, before); err != nil {
		return err
	}
	// Back is the moment of the start, not of readiness. The time between them is part of the
	// recovery.
	k.add(p.name, at, p.started(before+1))
	return nil
}

// killPostgres kills the server and starts it again.
func (s *stack) killPostgres(ctx context.Context, k *kills) error {
	at := time.Now()
	s.postgres.Kill()
	if err := s.restartPostgres(ctx); err != nil {
		return err
	}
	k.add("postgres", at, time.Now())
	return nil
}

func (s *stack) restartPostgres(ctx context.Context) error {
	s.postgresOptions.Port = s.postgres.Port()
	again, err := devstack.StartPostgres(ctx, s.postgresOptions)
	if err != nil {
		return errors.Wrap(err, "start Postgres again")
	}
	s.postgres = again
	s.lead("postgres", net.JoinHostPort("127.0.0.1", strconv.Itoa(again.Port())))
	return nil
}

// lead points the links of a server at its present address.
func (s *stack) lead(to, address string) {
	for _, l := range s.links {
		if l.to == to {
			l.proxy.lead(address)
		}
	}
}

// cutFor cuts a link for a while.
func (s *stack) cutFor(ctx context.Context, k *kills, l link, c cut, during time.Duration) error {
	at := time.Now()
	l.proxy.set(c)
	defer func() {
		l.proxy.set(whole)
		k.add("cut "+l.from+" to "+l.to, at, time.Now())
	}()
	return pause(ctx, during)
}

// pause waits, and returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
