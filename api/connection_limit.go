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

// limitedListener has only so many connections open. When one more comes, the one that
// has waited longest for its client is closed: idle, slow to send a request, or slow to
// read its answer. One that has waited for less than evictAfter stays, and so does one
// whose request is being worked on; while there is no other, the new connection waits.
type limitedListener struct {
	net.Listener
	limit      int
	evictAfter time.Duration

	mu     sync.Mutex
	change *sync.Cond // a connection was closed or may have waited long enough, or the listener is closed
	open   map[*connection]struct{}
	closed bool
}

// evictedWithoutFiles are how many connections are closed when the process can't open
// anything more: for the new one, and for what else in the process wanted to be opened.
const evictedWithoutFiles = 16

func newLimitedListener(inner net.Listener, limits Limits) *limitedListener {
	l := &limitedListener{Listener: inner, limit: limits.Connections, evictAfter: limits.EvictAfter, open: map[*connection]struct{}{}}
	l.change = sync.NewCond(&l.mu)
	return l
}

// Accept waits for a connection, and until there are few enough. Out of file descriptors
// it closes some and returns the error, after which http.Server tries again.
func (l *limitedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			for range evictedWithoutFiles {
				l.evict()
			}
		}
		return nil, err
	}
	for len(l.open) >= l.limit && !l.closed {
		if wait := l.evict(); wait > 0 {
			wake := time.AfterFunc(wait, l.wake)
			l.change.Wait()
			wake.Stop()
		}
	}
	conn := &connection{Conn: accepted, listener: l, since: time.Now()}
	l.open[conn] = struct{}{}
	return conn, nil
}

// evict closes the connection that has waited longest, and returns 0. Where none has
// waited long enough, or the listener is closed, it returns for how long none will have.
// It needs the lock, and lets go of it while it closes.
func (l *limitedListener) evict() (wait time.Duration) {
	var longest *connection
	for conn := range l.open {
		if !conn.since.IsZero() && (longest == nil || conn.since.Before(longest.since)) {
			longest = conn
		}
	}
	if longest == nil || l.closed {
		return l.evictAfter
	}
	if wait := l.evictAfter - time.Since(longest.since); wait > 0 {
		return wait
	}
	longest.forget()
	l.mu.Unlock()
	_ = longest.Conn.Close()
	l.mu.Lock()
	return 0
}

// wake has Accept look again.
func (l *limitedListener) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change.Broadcast()
}

// Close takes no more connections; those that are open stay.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// connection is one that the listener has accepted.
type connection struct {
	net.Conn
	listener *limitedListener
	// Under the listener's lock. Since is since when nothing is done for it, zero while
	// a request is worked on. Only the goroutine that serves the connection moves it.
	since time.Time
	gone  bool
}

type connectionKey struct{}

// noteWork notes on the connection that its request is being worked on.
func noteWork(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			if _, open := conn.waits(time.Time{}); !open {
				// It was closed meanwhile, and nobody would hear what became of this.
				panic(http.ErrAbortHandler)
			}
			// The end of the answer isn't written yet: evictAfter leaves it the time.
			defer func() { conn.waits(time.Now()) }()
			if r.Body != http.NoBody {
				// A copy, because http.Server looks at its own request's body.
				r = r.WithContext(r.Context())
				r.Body = &awaitedBody{ReadCloser: r.Body, connection: conn}
			}
		}
		h.ServeHTTP(w, r)
	})
}

// awaitedBody is a body that the client may be slow to send.
type awaitedBody struct {
	io.ReadCloser
	connection *connection
	since      time.Time // the first Read
}

// Read waits for the client. All of them together count as one wait, so that bytes
// that drip don't begin it anew. (The connection's own Read doesn't wait: http.Server
// is always in it, to see the client leave.)
func (a *awaitedBody) Read(b []byte) (int, error) {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	before, _ := a.connection.waits(a.since)
	n, err := a.ReadCloser.Read(b)
	a.connection.waits(before)
	return n, err
}

// waits says since when the connection waits for its client, and returns what was said
// before and whether the connection is still there.
func (conn *connection) waits(since time.Time) (before time.Time, open bool) {
	conn.listener.mu.Lock()
	defer conn.listener.mu.Unlock()
	before, conn.since = conn.since, since
	return before, !conn.gone
}

// Write waits for the client.
func (conn *connection) Write(b []byte) (int, error) {
	before, _ := conn.waits(time.Now())
	n, err := conn.Conn.Write(b)
	conn.waits(before)
	return n, err
}

// CloseWrite lets http.Server end its side first, so that the client still reads
// why it is refused.
func (conn *connection) CloseWrite() error {
	if c, ok := conn.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close lets the next connection in.
func (conn *connection) Close() error {
	conn.listener.mu.Lock()
	conn.forget()
	conn.listener.mu.Unlock()
	return conn.Conn.Close()
}

// forget needs the listener's lock.
func (conn *connection) forget() {
	conn.gone = true
	delete(conn.listener.open, conn)
	conn.listener.change.Broadcast()
}
