package main

import (
	"context"
	"time"

	"github.com/go-faster/errors"
)

// watchTemporal starts Temporal again when it ends by itself, as a service manager does:
// temporal-server gives up when it loses its database in the seconds after its start.
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
			if s.temporal == t { // else it was killed, and started again
				at := time.Now()
				s.report("Temporal ended by itself and is started again")
				if s.revive(ctx) == nil {
					k.add("temporal", at, time.Now())
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

// revive starts Temporal, again and again until it runs: its database may go away meanwhile.
// It needs the lock.
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
