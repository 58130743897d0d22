package testkit

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

// Received is one request of a receiver.
type Received struct {
	Header http.Header
	Body   []byte
	// Event is the verified event. Invalid is the error if the signature is wrong.
	Event   webhook.Event
	Invalid error
}

// DeliveryID returns the request's delivery id header.
func (r Received) DeliveryID() string { return r.Header.Get(webhook.HeaderDelivery) }

// Receiver is a webhook endpoint on a real socket.
type Receiver struct {
	URL string

	mu     sync.Mutex
	secret string
	answer func(n int, r Received) int
	got    []Received
	// changed is closed and replaced at each request.
	changed chan struct{}
}

// NewReceiver starts an endpoint that answers 200.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{changed: make(chan struct{}), answer: func(int, Received) int { return http.StatusOK }}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL + "/hook"
	return r
}

// Verify checks signatures with the secret from now on.
func (r *Receiver) Verify(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// Answer sets the function that chooses the status of later answers. The number n counts all
// requests from 1. The function may block.
func (r *Receiver) Answer(answer func(n int, got Received) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// ServeHTTP receives a delivery.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	got := Received{Header: q.Header, Body: body}
	r.mu.Lock()
	q.Body = io.NopCloser(bytes.NewReader(body))
	if r.secret != "" {
		got.Event, got.Invalid = webhook.VerifyRequest(q, r.secret, time.Now())
	}
	r.got = append(r.got, got)
	n, answer := len(r.got), r.answer
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	w.WriteHeader(answer(n, got))
}

// All returns the requests so far.
func (r *Receiver) All() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.got...)
}

// Await returns the requests as soon as there are n, and fails the test if they don't arrive.
func (r *Receiver) Await(t testing.TB, n int) []Received {
	t.Helper()
	deadline := time.After(Wait)
	for {
		r.mu.Lock()
		changed, have := r.changed, len(r.got)
		r.mu.Unlock()
		if have >= n {
			return r.All()
		}
		select {
		case <-changed:
		case <-deadline:
			require.Failf(t, "deliveries didn't come", "%d of %d came", have, n)
		}
	}
}

// Held waits for the status of an answer. At the end of the test it returns 500, because a failed test
// sends no status, and the receiver waits for its answers.
func Held(t testing.TB, status <-chan int) int {
	select {
	case s := <-status:
		return s
	case <-t.Context().Done():
		return http.StatusInternalServerError
	}
}
