package dispatch

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
)

// errand is the start of one run that isn't a delivery's. It is tried until
// Temporal takes it or says no; what a process leaves undone is the sweep's.
type errand struct {
	// what it is of, and its id, for the log.
	what  string
	id    fmt.Stringer
	start func(ctx context.Context, c client.Client) error
}

// send queues errands and returns at once.
func (s *Dispatcher) send(errands []errand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errands)+len(errands) > maxWaiting {
		s.log.Warn("too many runs wait for their start; the sweep will start these", "runs", len(errands))
		return
	}
	if s.errands = append(s.errands, errands...); !s.sending && len(s.errands) > 0 {
		s.sending = true
		go s.sendAll()
	}
}

func (s *Dispatcher) sendAll() {
	for {
		s.mu.Lock()
		if len(s.errands) == 0 {
			s.sending = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		next := s.errands[0]
		s.errands = s.errands[1:]
		s.mu.Unlock()
		if !s.try(next) {
			s.pause(startPause)
			s.mu.Lock()
			select {
			case <-s.quit:
			default:
				s.errands = append(s.errands, next)
			}
			s.mu.Unlock()
		}
	}
}

// try reports whether the errand is off the queue's hands.
func (s *Dispatcher) try(e errand) bool {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := s.temporal.Client(ctx)
	if err != nil {
		s.log.Warn("Temporal is away; runs wait for their start", "error", err)
		return false
	}
	if err = e.start(ctx, c); err == nil {
		return true
	}
	again := unreachable(err)
	s.log.Warn("start a run", "what", e.what, "id", e.id, "error", err, "again", again)
	return !again
}
