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

// limitedListener limits the number of open connections. At the limit, it closes the connection
// that has waited longest for its client. Such a client is idle, slow to send a request, or slow to
// read its answer. A connection stays open if it has waited for less than evictAfter, or if its
// request is being processed. The new connection waits until another one can be closed.
type limitedListener struct {
	net.Listener
	limit      int
	evictAfter time.Duration

	mu     sync.Mutex
	change *sync.Cond // signals a closed connection, a long enough wait, or a closed listener
	open   map[*connection]struct{}
	closed bool
}

// evictedWithoutFiles is the number of connections to close when the process has no file
// descriptors left. They make room for the new connection and for other files of the process.
const evictedWithoutFiles = 16

func newLimitedListener(inner net.Listener, limits Limits) *limitedListener {
	l := &limitedListener{Listener: inner, limit: limits.Connections, evictAfter: limits.EvictAfter, open: map[*connection]struct{}{}}
	l.change = sync.NewCond(&l.mu)
	return l
}

// Accept waits for a connection, and until the number of open connections is below the limit.
// Without free file descriptors, it closes some connections and returns the error. The http.Server
// then tries again.
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

// evict closes the connection that has waited longest, and returns 0. If no connection has waited
// long enough, or the listener is closed, it returns the time until the next try. The caller holds
// the lock, and evict releases it while it closes the connection.
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

// wake makes Accept try again.
func (l *limitedListener) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change.Broadcast()
}

// Close stops accepting connections. Open connections stay open.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// connection is a connection that the listener has accepted.
type connection struct {
	net.Conn
	listener *limitedListener
	// The listener's lock guards these fields. The connection began to wait for its client at
	// since, which is zero while a request is being processed. Only the goroutine that serves the
	// connection changes it.
	since time.Time
	gone  bool
}

type connectionKey struct{}

// noteWork marks the connection as busy while its request is being processed.
func noteWork(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			if _, open := conn.waits(time.Time{}); !open {
				// The connection was closed in the meantime, so the client can't get an answer.
				panic(http.ErrAbortHandler)
			}
			// The end of the answer isn't written yet, and evictAfter leaves enough time for it.
			defer func() { conn.waits(time.Now()) }()
			if r.Body != http.NoBody {
				// A copy, because http.Server inspects the body of its own request.
				r = r.WithContext(r.Context())
				r.Body = &awaitedBody{ReadCloser: r.Body, connection: conn}
			}
		}
		h.ServeHTTP(w, r)
	})
}

// awaitedBody is a request body that the client may send slowly.
type awaitedBody struct {
	io.ReadCloser
	connection *connection
	since      time.Time // the first Read
}

// Read counts as a wait for the client. All reads of a body are one wait, so that single bytes
// don't restart it. The connection's own Read doesn't count, because http.Server always reads in
// order to notice that the client leaves.
func (a *awaitedBody) Read(b []byte) (int, error) {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	before, _ := a.connection.waits(a.since)
	n, err := a.ReadCloser.Read(b)
	a.connection.waits(before)
	return n, err
}

// waits sets the time at which the connection began to wait for its client. It returns the previous
// time, and whether the connection is still open.
func (conn *connection) waits(since time.Time) (before time.Time, open bool) {
	conn.listener.mu.Lock()
	defer conn.listener.mu.Unlock()
	before, conn.since = conn.since, since
	return before, !conn.gone
}

// Write counts as a wait for the client.
func (conn *connection) Write(b []byte) (int, error) {
	before, _ := conn.waits(time.Now())
	n, err := conn.Conn.Write(b)
	conn.waits(before)
	return n, err
}

// CloseWrite lets http.Server close its side first, so that the client can still read the reason of
// a refusal.
func (conn *connection) CloseWrite() error {
	if c, ok := conn.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close closes the connection and makes room for the next one.
func (conn *connection) Close() error {
	conn.listener.mu.Lock()
	conn.forget()
	conn.listener.mu.Unlock()
	return conn.Conn.Close()
}

// forget removes the connection from the listener. The caller holds the listener's lock.
func (conn *connection) forget() {
	conn.gone = true
	delete(conn.listener.open, conn)
	conn.listener.change.Broadcast()
}
