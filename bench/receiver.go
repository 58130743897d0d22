package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// receiver answers at once and notes when each post's webhook arrived.
type receiver struct {
	url    string
	server *httptest.Server

	mu      sync.Mutex
	began   []time.Time
	arrived []time.Duration
	left    int
	done    chan struct{}
	round   string
}

func newReceiver() *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(r)
	r.url = r.server.URL
	return r
}

func (r *receiver) close() { r.server.Close() }

// expect starts a measurement of n posts; the channel closes when all are there.
func (r *receiver) expect(n int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.arrived = make([]time.Time, n), make([]time.Duration, n)
	r.left, r.done, r.round = n, make(chan struct{}), uuid.NewString()
	return r.done
}

// title tells the number of a post, and the measurement that it belongs to.
func (r *receiver) title(i int) string { return fmt.Sprintf("Arrival %d of %s", i, r.round) }

var numbered = regexp.MustCompile(`"title":"Arrival (\d+) of ([0-9a-f-]+)"`)

func (r *receiver) begin(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[i] = time.Now()
}

// ServeHTTP takes a webhook. Only the first arrival of a post counts.
func (r *receiver) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	m := numbered.FindSubmatch(body)
	if m == nil {
		return
	}
	i, _ := strconv.Atoi(string(m[1]))
	r.mu.Lock()
	defer r.mu.Unlock()
	if string(m[2]) != r.round || r.arrived[i] != 0 {
		return // late, of the round before, or a second time
	}
	r.arrived[i] = at.Sub(r.began[i])
	if r.left--; r.left == 0 {
		close(r.done)
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
