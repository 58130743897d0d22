package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
)

const (
	// healthEvery is the interval between readiness checks of a backend.
	healthEvery = 250 * time.Millisecond
	// dialTimeout bounds a connection to a backend; on loopback it takes microseconds.
	dialTimeout = time.Second
)

// balancer passes TCP connections on, in turn, to the backends whose /readyz reports ready. While
// no backend is ready it uses all of them, because an API without Temporal still accepts writes. It
// works below HTTP and repeats no request. If it can't reach a backend, it tries the next one
// before any byte is sent.
type balancer struct {
	listener net.Listener
	backends []*backend
	stop     context.CancelFunc
	next     atomic.Uint64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

type backend struct {
	address string
	ready   atomic.Bool
}

// newBalancer listens on loopback.
func newBalancer(addresses ...string) (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen for the balancer")
	}
	ctx, stop := context.WithCancel(context.Background())
	b := &balancer{listener: listener, stop: stop, conns: map[net.Conn]struct{}{}}
	for _, address := range addresses {
		to := &backend{address: address}
		b.backends = append(b.backends, to)
		b.all.Go(func() { to.watch(ctx) })
	}
	b.all.Go(b.accept)
	return b, nil
}

func (b *balancer) address() string { return b.listener.Addr().String() }

// close ends all connections and waits for the balancer's goroutines.
func (b *balancer) close() {
	b.stop()
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.all.Wait()
}

// watch checks the backend's readiness until the context ends.
func (to *backend) watch(ctx context.Context) {
	ask := http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		answer, err := ask.Get("http://" + to.address + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
		}
		to.ready.Store(err == nil && answer.StatusCode == http.StatusOK)
		if pause(ctx, healthEvery) != nil {
			return
		}
	}
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.all.Go(func() { b.serve(conn) })
	}
}

// serve passes one connection on until both sides have ended it.
func (b *balancer) serve(near net.Conn) {
	defer b.forget(near)
	b.note(near)
	far := b.dial()
	if far == nil {
		return
	}
	defer b.forget(far)
	b.note(far)
	var both sync.WaitGroup
	both.Go(func() { passOn(far, near) })
	both.Go(func() { passOn(near, far) })
	both.Wait()
}

// dial connects to the next backend in turn, or to the first one after it that it can reach. It
// tries ready backends first.
func (b *balancer) dial() net.Conn {
	turn := b.next.Add(1)
	for _, ready := range []bool{true, false} {
		for i := range b.backends {
			to := b.backends[(turn+uint64(i))%uint64(len(b.backends))]
			if to.ready.Load() != ready {
				continue
			}
			if conn, err := net.DialTimeout("tcp", to.address, dialTimeout); err == nil {
				return conn
			}
		}
	}
	return nil
}

// passOn copies bytes from one side to the other. At the end of the input it closes the writing
// half of the other side. If either side fails, both connections are reset.
func passOn(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	reset(to)
	reset(from)
}

func (b *balancer) note(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[conn] = struct{}{}
}

func (b *balancer) forget(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
	_ = conn.Close()
}
