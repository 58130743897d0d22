package testkit

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Link is a proxy to a database. It can cut connections, and lose the answer to a commit.
type Link struct {
	losing atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// committed is the answer of Postgres to a commit.
var committed = []byte("COMMIT\x00")

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
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, near, far)
			l.mu.Unlock()
			// Each end hears of the other's end. pgx waits up to 15 s for Postgres to close a canceled connection.
			go func() { l.answer(near, far); _ = near.Close() }()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
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

// LoseCommit loses the next answer to a commit and ends its connection, as if the database were killed
// right after the commit.
func (l *Link) LoseCommit() { l.losing.Store(true) }

// answer copies the answers of the database.
func (l *Link) answer(near io.Writer, far io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := far.Read(buffer)
		if bytes.Contains(buffer[:n], committed) && l.losing.CompareAndSwap(true, false) {
			return
		}
		if _, failed := near.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
