package main

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo starts a server that sends all input back.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, p *proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func exchange(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Write([]byte("ping"))
	require.NoError(t, err)
	receive(t, conn)
}

func receive(t *testing.T, conn net.Conn) {
	t.Helper()
	got := make([]byte, 4)
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, "ping", string(got))
}

func newEcho(t *testing.T) *proxy {
	t.Helper()
	p, err := newProxy(echo(t))
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
}

func TestARefusingLinkResetsOpenAndNewConnections(t *testing.T) {
	t.Parallel()
	p := newEcho(t)
	before := dial(t, p)
	exchange(t, before)
	p.set(refused)
	_, err := before.Read(make([]byte, 1))
	require.Error(t, err)
	during, err := net.Dial("tcp", p.address())
	if err == nil { // on a busy machine the reset comes before the dial returns
		t.Cleanup(func() { _ = during.Close() })
		_, err = during.Read(make([]byte, 1))
	}
	require.Error(t, err)
	p.set(whole)
	exchange(t, dial(t, p))
}

func TestASilentLinkPassesOnItsDataAfterItIsRestored(t *testing.T) {
	t.Parallel()
	p := newEcho(t)
	before := dial(t, p)
	exchange(t, before)
	p.set(silent)
	during := dial(t, p)
	for _, conn := range []net.Conn{before, during} {
		_, err := conn.Write([]byte("ping"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(pollInterval)))
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nothing comes through")
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
	}
	p.set(whole)
	receive(t, before)
	receive(t, during)
}
