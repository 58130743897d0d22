package receiver

import (
	"context"
	"hash/fnv"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Behaviour is how an endpoint answers.
type Behaviour string

const (
	// Healthy answers 200 immediately.
	Healthy Behaviour = "healthy"
	// Slow answers 200 after 300 ms.
	Slow Behaviour = "slow"
	// Flaky answers 500 to the first zero to two requests of a delivery, and 200 to the others. The
	// number depends on the delivery's id.
	Flaky Behaviour = "flaky"
	// Dead answers 503.
	Dead Behaviour = "dead"
	// Hanging never answers, and the client gives up.
	Hanging Behaviour = "hanging"
	// Held holds its answers back until its release, and then answers 200.
	Held Behaviour = "held"
)

// slowness is much longer than a healthy receiver takes, and much shorter than an attempt's 10 s.
const slowness = 300 * time.Millisecond

// flakiness is how many numbers of failures there are, beginning with 0. A delivery has five
// attempts, so every delivery to Flaky succeeds, even if some attempts are repeated after a kill.
const flakiness = 3

// gone is decide's result for a client that has disconnected.
const gone = 0

// endpoint is an Endpoint with its state.
type endpoint struct {
	Endpoint
	released chan struct{}
	release  func()
	waiting  atomic.Int64

	mu       sync.Mutex
	requests map[string]int // of a Flaky endpoint, by delivery
}

func newEndpoint(e Endpoint) *endpoint {
	released := make(chan struct{})
	return &endpoint{
		Endpoint: e, released: released, release: sync.OnceFunc(func() { close(released) }),
		requests: map[string]int{},
	}
}

// decide waits as the endpoint's behaviour requires and returns the status to answer, or gone.
func (e *endpoint) decide(client context.Context, delivery string) int {
	switch e.Behaviour {
	case Slow:
		select {
		case <-time.After(slowness):
		case <-client.Done():
			return gone
		}
	case Flaky:
		if e.count(delivery) <= Failures(delivery) {
			return http.StatusInternalServerError
		}
	case Dead:
		return http.StatusServiceUnavailable
	case Hanging:
		<-client.Done()
		return gone
	case Held:
		select {
		case <-e.released:
		case <-client.Done():
			return gone
		}
	case Healthy:
	}
	return http.StatusOK
}

// count returns the number of a delivery's request, from 1.
func (e *endpoint) count(delivery string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests[delivery]++
	return e.requests[delivery]
}

// Failures returns how many requests of a delivery a Flaky endpoint answers with 500.
func Failures(delivery string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(delivery))
	return int(h.Sum32() % flakiness)
}
