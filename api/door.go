package api

import (
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

// door is a listener that has only so many connections open. When one more comes,
// the one that has waited longest gives way: idle, slow to send a request, or slow
// to read its answer. Who has waited for less than the door's patience stays, and so
// does a request that is being worked on; while there is nobody else, the next
// connection waits.
type door struct {
	net.Listener
	limit    int
	patience time.Duration

	mu       sync.Mutex
	change   *sync.Cond // somebody left, may have waited long enough, or the door is closed
	visitors map[*visitor]struct{}
	closed   bool
}

// evictions are how many give way when the process can't open anything more: for
// that connection, and for what others in the process wanted to open.
const evictions = 16

func newDoor(l net.Listener, limits Limits) *door {
	d := &door{Listener: l, limit: limits.Connections, patience: limits.Patience, visitors: map[*visitor]struct{}{}}
	d.change = sync.NewCond(&d.mu)
	return d
}

// Accept waits for a connection and for room. Out of file descriptors it makes room
// and returns the error, after which http.Server tries again.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			for range evictions {
				d.giveWay()
			}
		}
		return nil, err
	}
	for len(d.visitors) >= d.limit && !d.closed {
		if wait := d.giveWay(); wait > 0 {
			wake := time.AfterFunc(wait, d.wake)
			d.change.Wait()
			wake.Stop()
		}
	}
	v := &visitor{Conn: c, door: d, since: time.Now()}
	d.visitors[v] = struct{}{}
	return v, nil
}

// giveWay closes who has waited longest, and returns 0. Where nobody has waited long
// enough, or the door is closed, it returns how long nobody will have. It needs the
// lock, and lets go of it while it closes.
func (d *door) giveWay() (wait time.Duration) {
	var longest *visitor
	for v := range d.visitors {
		if !v.since.IsZero() && (longest == nil || v.since.Before(longest.since)) {
			longest = v
		}
	}
	if longest == nil || d.closed {
		return d.patience
	}
	if wait := d.patience - time.Since(longest.since); wait > 0 {
		return wait
	}
	longest.leave()
	d.mu.Unlock()
	_ = longest.Conn.Close()
	d.mu.Lock()
	return 0
}

// wake has Accept look again.
func (d *door) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change.Broadcast()
}

// Close takes no more connections; those that are open stay.
func (d *door) Close() error {
	d.mu.Lock()
	d.closed = true
	d.change.Broadcast()
	d.mu.Unlock()
	return d.Listener.Close()
}

// visitor is a connection that came in by the door.
type visitor struct {
	net.Conn
	door *door
	// Under the door's lock. Since is since when nothing is done for it, zero while
	// a request is worked on. Only the goroutine that serves the connection moves it.
	since time.Time
	gone  bool
}

type visitorKey struct{}

// atWork notes that a request is being worked on.
func atWork(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			if _, open := v.waits(time.Time{}); !open {
				// It gave way meanwhile, and nobody would hear what became of this.
				panic(http.ErrAbortHandler)
			}
			// The end of the answer isn't written yet: patience leaves it the time.
			defer func() { v.waits(time.Now()) }()
			if r.Body != http.NoBody {
				// A copy, because http.Server looks at its own request's body.
				r = r.WithContext(r.Context())
				r.Body = &awaited{ReadCloser: r.Body, visitor: v}
			}
		}
		h.ServeHTTP(w, r)
	})
}

// awaited is a body that the client may be slow to send.
type awaited struct {
	io.ReadCloser
	visitor *visitor
	since   time.Time // the first Read
}

// Read waits for the client. All of them together count as one wait, so that bytes
// that drip don't begin it anew. (The connection's own Read doesn't wait: http.Server
// is always in it, to see the client leave.)
func (a *awaited) Read(b []byte) (int, error) {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	before, _ := a.visitor.waits(a.since)
	n, err := a.ReadCloser.Read(b)
	a.visitor.waits(before)
	return n, err
}

// waits says since when nothing is done for the visitor, and returns what was said
// before and whether the connection is still there.
func (v *visitor) waits(since time.Time) (before time.Time, open bool) {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	before, v.since = v.since, since
	return before, !v.gone
}

// Write waits for the client.
func (v *visitor) Write(b []byte) (int, error) {
	before, _ := v.waits(time.Now())
	n, err := v.Conn.Write(b)
	v.waits(before)
	return n, err
}

// CloseWrite lets http.Server end its side first, so that the client still reads
// why it is refused.
func (v *visitor) CloseWrite() error {
	if c, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close makes room for the next.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	v.leave()
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// leave needs the door's lock.
func (v *visitor) leave() {
	v.gone = true
	delete(v.door.visitors, v)
	v.door.change.Broadcast()
}
