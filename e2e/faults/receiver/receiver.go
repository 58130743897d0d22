// Package receiver is the receiver of the fault harness: an http.Handler that writes
// down all that reaches it, in a ledger, and answers as an endpoint is told to.
//
// It takes no code from the service: a signature is checked here anew.
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

// Prefix of the path of every endpoint; the endpoint's name follows.
const Prefix = "/hook/"

// maxBody is far more than the largest event, in bytes.
const maxBody = 8 << 20

// Endpoint is what a webhook's URL leads to.
type Endpoint struct {
	Name string
	// Secret is the webhook's, with its prefix.
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

// Add makes an endpoint, or puts another in the place of the one of that name: what
// that one held back is answered.
func (r *Receiver) Add(e Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.endpoints[e.Name]; old != nil {
		old.release()
	}
	r.endpoints[e.Name] = newEndpoint(e)
}

// Release lets a Held endpoint answer what it holds back, and all that follows.
func (r *Receiver) Release(name string) {
	if e := r.endpoint(name); e != nil {
		e.release()
	}
}

// Waiting is how many requests an endpoint has read and not yet answered.
func (r *Receiver) Waiting(name string) int {
	if e := r.endpoint(name); e != nil {
		return int(e.waiting.Load())
	}
	return 0
}

// Err is the first thing that couldn't be written to the ledger. A ledger with a gap
// proves nothing.
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

// ServeHTTP takes a request. One for an endpoint that isn't there is written down,
// too, and gets 404.
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
		w.WriteHeader(http.StatusInternalServerError) // what isn't in the ledger wasn't received
		return
	}
	e.waiting.Add(1)
	status := e.decide(q.Context(), entry.Delivery)
	e.waiting.Add(-1)
	r.answer(w, entry, status)
}

// answer writes the whole answer, so that an error of it shows, and then notes it.
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
