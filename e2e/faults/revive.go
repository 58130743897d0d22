package main

import (
	"context"
	"time"

	"github.com/go-faster/errors"
)

// watchTemporal restarts Temporal when it exits unexpectedly, as a service manager does. For
// example, temporal-server exits if it loses its database in the first seconds after its start.
func (s *stack) watchTemporal(k *kills) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.unwatch = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		for {
			s.temporalLock.Lock()
			t := s.temporal
			s.temporalLock.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-t.Done():
			}
			s.temporalLock.Lock()
			if s.temporal == t { // Otherwise killTemporal has replaced it.
				at := time.Now()
				s.report("Temporal ended by itself and is started again")
				if err := s.revive(ctx); err == nil {
					k.add("temporal", at, time.Now())
				} else if ctx.Err() == nil {
					s.report("%v", err)
				}
			}
			s.temporalLock.Unlock()
		}
	}()
}

// killTemporal kills the server and starts it again.
func (s *stack) killTemporal(ctx context.Context, k *kills) error {
	s.temporalLock.Lock()
	defer s.temporalLock.Unlock()
	at := time.Now()
	s.temporal.Kill()
	if err := s.revive(ctx); err != nil {
		return err
	}
	k.add("temporal", at, time.Now())
	return nil
}

// revive tries to start Temporal until it runs, because its database may be away at times. The
// caller holds temporalLock.
func (s *stack) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for {
		again, err := s.startTemporal(ctx)
		if err == nil {
			s.temporal = again
			s.lead("temporal", again.Address())
			return nil
		}
		if pause(ctx, respawnPause) != nil {
			return errors.Wrap(err, "start Temporal again")
		}
	}
}
