package testkit

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Link is a proxy to a database whose connections can be cut.
type Link struct {
	mu    sync.Mutex
	conns []net.Conn
	last  []byte
	// ending is locked while the database completes the last batch of a connection that is cut.
	ending sync.Mutex
}

// NewLink returns a link and the database's URL through it.
func NewLink(t testing.TB, database string) (*Link, string) {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Link{}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			// pgx opens a connection to cancel the statement of a connection that was cut. It has to wait until
			// the statement has ended.
			l.ending.Lock()
			far, err := net.Dial("tcp", server)
			l.ending.Unlock()
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, near, far)
			l.mu.Unlock()
			// Each end hears of the other's end. pgx waits up to 15 s for Postgres to close a canceled connection.
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			go func() { l.forward(far, near); _ = far.Close() }()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
	})
	u.Host = listener.Addr().String()
	return l, u.String()
}

// Cut ends all connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// forget excludes a connection from Cut.
func (l *Link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(other net.Conn) bool { return other == c })
}

// CutAfter ends all connections once, after the database has received a batch of statements with the text.
// Its answer gets lost.
func (l *Link) CutAfter(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = []byte(text)
}

// syncMessage ends a batch of statements in Postgres's protocol.
var syncMessage = []byte{'S', 0, 0, 0, 4}

// forward copies what a client sends.
func (l *Link) forward(far net.Conn, near io.Reader) {
	sent := make([]byte, 64<<10)
	found := false
	for {
		n, err := near.Read(sent)
		l.mu.Lock()
		if l.last != nil && bytes.Contains(sent[:n], l.last) {
			found, l.last = true, nil
		}
		l.mu.Unlock()
		// A read may end amid the statements of a batch.
		isLast := found && bytes.HasSuffix(sent[:n], syncMessage)
		if _, failed := far.Write(sent[:n]); failed != nil || err != nil {
			return
		}
		if isLast {
			// A database whose connection is reset may drop what it has not read. So this end is only
			// closed for writing, and the answer is read and dropped.
			l.forget(far)
			l.ending.Lock()
			l.Cut()
			_ = far.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, far)
			l.ending.Unlock()
			return
		}
	}
}
