package main

import (
	"io"
	"net"
	"sync"

	"github.com/go-faster/errors"
)

// cut is the state of a link.
type cut int

const (
	whole cut = iota
	// refused: connections are reset, and new ones are reset on arrival.
	refused
	// silent: nothing passes and neither side gets an error, as when a cable is pulled. The data
	// arrives after the link is whole again, as with TCP.
	silent
)

// proxy is the network between one process and one server. The process dials the proxy instead of
// the server. Only the harness cuts it.
type proxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	cut    cut
	// changed is closed when the cut changes.
	changed chan struct{}
	conns   map[net.Conn]struct{}
}

// newProxy listens on loopback and passes everything on to the target.
func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen for a link")
	}
	p := &proxy{listener: listener, target: target, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// lead points the link at another address, for future connections.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// set cuts the link or makes it whole.
func (p *proxy) set(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = c
	close(p.changed)
	p.changed = make(chan struct{})
	if c == refused {
		for conn := range p.conns {
			reset(conn)
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.set(refused)
}

// reset ends a connection with RST instead of FIN.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(conn)
	}
}

// passable waits while the link is silent. It returns false if the link is refused.
func (p *proxy) passable() (target string, ok bool) {
	for {
		p.mu.Lock()
		c, changed, target := p.cut, p.changed, p.target
		p.mu.Unlock()
		if c != silent {
			return target, c == whole
		}
		<-changed
	}
}

func (p *proxy) serve(near net.Conn) {
	defer reset(near)
	defer p.drop(near)
	if !p.hold(near) {
		return
	}
	target, ok := p.passable()
	if !ok {
		return
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		return // The server is away, and the process sees a reset.
	}
	defer reset(far)
	defer p.drop(far)
	if !p.hold(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(far, near) })
	both.Go(func() { p.pump(near, far) })
	both.Wait()
}

// hold adds a connection to those that a cut resets.
func (p *proxy) hold(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = struct{}{}
	return p.cut != refused
}

func (p *proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// pump passes bytes on, and finally the end of the input.
func (p *proxy) pump(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if _, ok := p.passable(); !ok {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				reset(from)
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			return
		default:
			reset(to)
			return
		}
	}
}
