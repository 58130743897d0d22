package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"earshot/webhook"
)

// receiver answers immediately. It records which webhooks arrived, when, and how often.
type receiver struct {
	url    string
	server *httptest.Server

	mu     sync.Mutex
	secret string
	began  []time.Time
	// arrived is the latency of each post's webhook, or 0 if it hasn't arrived.
	arrived []time.Duration
	left    int
	done    chan struct{}
	round   string
	// deliveries counts the requests of each delivery. The number forged is for requests with a
	// wrong signature, and strays for requests that belong to no post of the round.
	deliveries     map[string]int
	forged, strays int
	// oddity describes the first forged or stray request.
	oddity string
}

func newReceiver() *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(r)
	r.url = r.server.URL
	return r
}

func (r *receiver) close() { r.server.Close() }

// expect starts a measurement of n posts. The channel closes when all of them have arrived.
func (r *receiver) expect(n int, secret string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
	r.began, r.arrived = make([]time.Time, n), make([]time.Duration, n)
	r.left, r.done, r.round = n, make(chan struct{}), uuid.NewString()
	r.deliveries, r.forged, r.strays, r.oddity = map[string]int{}, 0, 0, ""
	return r.done
}

// title encodes the number of a post and the measurement that it belongs to.
func (r *receiver) title(i int) string { return fmt.Sprintf("Arrival %d of %s", i, r.round) }

var numbered = regexp.MustCompile(`"title":"Arrival (\d+) of ([0-9a-f-]+)"`)

// begin records the time from which the latency of post i counts.
func (r *receiver) begin(i int, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[i] = at
}

// floorPath is the path of the floors' webhook. The receiver ignores its requests, because no run
// waits for the webhooks of the floors' posts.
const floorPath = "/floor"

// ServeHTTP receives a webhook. Only the first arrival of a post is timed.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	at := time.Now()
	if q.URL.Path == floorPath {
		return
	}
	r.mu.Lock()
	secret := r.secret
	r.mu.Unlock()
	event, err := webhook.VerifyRequest(q, secret, at)
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
	}
	m := numbered.FindSubmatch(event.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.forged++
		r.note(q, err.Error())
		return
	case m == nil || string(m[2]) != r.round:
		r.strays++
		r.note(q, "another post's")
		return
	}
	r.deliveries[event.DeliveryID]++
	i, _ := strconv.Atoi(string(m[1]))
	if i >= len(r.arrived) || r.arrived[i] != 0 {
		return
	}
	r.arrived[i] = at.Sub(r.began[i])
	if r.left--; r.left == 0 {
		close(r.done)
	}
}

// note describes the first odd request.
func (r *receiver) note(q *http.Request, what string) {
	if r.oddity == "" {
		r.oddity = fmt.Sprintf("%s %s: %s", q.Header.Get(webhook.HeaderEvent), q.Header.Get(webhook.HeaderDelivery), what)
	}
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrived) - r.left
}

func (r *receiver) times() *latencies {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &latencies{all: append([]time.Duration(nil), r.arrived...)}
}
