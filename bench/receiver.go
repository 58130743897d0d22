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

// receiver answers at once, and notes which webhooks arrived, when, and how often.
type receiver struct {
	url    string
	server *httptest.Server

	mu     sync.Mutex
	secret string
	began  []time.Time
	// arrived is how long each post's webhook took; 0 is not yet.
	arrived []time.Duration
	left    int
	done    chan struct{}
	round   string
	// deliveries counts the requests of each; forged are those whose signature isn't right, and
	// strays those that no post of the round explains.
	deliveries     map[string]int
	forged, strays int
	// oddity says what the first of them was.
	oddity string
}

func newReceiver() *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(r)
	r.url = r.server.URL
	return r
}

func (r *receiver) close() { r.server.Close() }

// expect starts a measurement of n posts; the channel closes when all are there.
func (r *receiver) expect(n int, secret string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
	r.began, r.arrived = make([]time.Time, n), make([]time.Duration, n)
	r.left, r.done, r.round = n, make(chan struct{}), uuid.NewString()
	r.deliveries, r.forged, r.strays, r.oddity = map[string]int{}, 0, 0, ""
	return r.done
}

// title tells the number of a post, and the measurement that it belongs to.
func (r *receiver) title(i int) string { return fmt.Sprintf("Arrival %d of %s", i, r.round) }

var numbered = regexp.MustCompile(`"title":"Arrival (\d+) of ([0-9a-f-]+)"`)

// begin says since when post i is on its way.
func (r *receiver) begin(i int, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[i] = at
}

// floorPath is where the floors' webhook points to. Theirs are the posts that floors need to be
// there, of which no run waits for the webhook.
const floorPath = "/floor"

// ServeHTTP takes a webhook. Only the first arrival of a post is timed.
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

// note keeps what is odd about a request, where it is the first.
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
