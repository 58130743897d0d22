// Package receiver is the receiver of the fault harness. It is an http.Handler that records every
// request in a ledger and answers by the behaviour of the endpoint.
//
// It shares no code with the service and verifies signatures with its own code.
package receiver

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/ledger"
)

// Prefix is the beginning of every endpoint's path; the endpoint's name follows.
const Prefix = "/hook/"

// maxBody is much larger than the largest event, in bytes.
const maxBody = 8 << 20

// Endpoint is the target of a webhook's URL.
type Endpoint struct {
	Name string
	// Secret is the webhook's secret, with its prefix.
	Secret    string
	Behaviour Behaviour
}

// Receiver is the handler. It is safe for concurrent use.
type Receiver struct {
	ledger  *ledger.Writer
	numbers atomic.Int64
	failure atomic.Pointer[error]

	mu        sync.RWMutex
	endpoints map[string]*endpoint
}

// New makes a receiver without endpoints that writes to l.
func New(l *ledger.Writer) *Receiver {
	return &Receiver{ledger: l, endpoints: map[string]*endpoint{}}
}

// Add makes an endpoint, or replaces the one of that name. The replaced endpoint answers the
// requests that it held back.
func (r *Receiver) Add(e Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.endpoints[e.Name]; old != nil {
		old.release()
	}
	r.endpoints[e.Name] = newEndpoint(e)
}

// Release lets a Held endpoint answer the requests that it holds back, and all later ones.
func (r *Receiver) Release(name string) {
	if e := r.endpoint(name); e != nil {
		e.release()
	}
}

// Waiting returns how many requests an endpoint has read and not yet answered.
func (r *Receiver) Waiting(name string) int {
	if e := r.endpoint(name); e != nil {
		return int(e.waiting.Load())
	}
	return 0
}

// Err returns the first error of a write to the ledger. A ledger with a gap proves nothing.
func (r *Receiver) Err() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *Receiver) endpoint(name string) *endpoint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.endpoints[name]
}

// ServeHTTP records and answers a request. An unknown endpoint's request is recorded, too, and gets
// 404.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := strings.TrimPrefix(q.URL.Path, Prefix)
	e := r.endpoint(name)
	entry := ledger.Entry{
		Request: r.numbers.Add(1), Endpoint: name,
		Delivery: q.Header.Get("X-Service-Delivery"), Event: q.Header.Get("X-Service-Event"),
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err != nil {
		r.append(entry, ledger.Broken)
		return
	}
	sum := sha256.Sum256(body)
	entry.Sum, entry.Subject = hex.EncodeToString(sum[:]), subjectOf(body)
	if e == nil {
		r.append(entry, ledger.Arrived)
		r.answer(w, entry, http.StatusNotFound)
		return
	}
	entry.Signed = genuine(e.Secret, q.Header.Values("X-Service-Signature"), body, time.Now())
	if !r.append(entry, ledger.Arrived) {
		w.WriteHeader(http.StatusInternalServerError) // A request without a ledger entry counts as not received.
		return
	}
	e.waiting.Add(1)
	status := e.decide(q.Context(), entry.Delivery)
	e.waiting.Add(-1)
	r.answer(w, entry, status)
}

// answer writes the whole answer, so that it sees any error, and then records it.
func (r *Receiver) answer(w http.ResponseWriter, entry ledger.Entry, status int) {
	if status == gone {
		r.append(entry, ledger.Broken)
		return
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
	if http.NewResponseController(w).Flush() != nil {
		r.append(entry, ledger.Broken)
		return
	}
	entry.Status = status
	r.append(entry, ledger.Answered)
}

func (r *Receiver) append(e ledger.Entry, kind ledger.Kind) bool {
	e.At, e.Kind = time.Now(), kind
	if err := r.ledger.Append(e); err != nil {
		err = errors.Wrap(err, "write down a request")
		r.failure.CompareAndSwap(nil, &err)
		return false
	}
	return true
}
