// Package hostile has receivers that do what no receiver should. They speak HTTP by hand
// over raw sockets, because no server of a library would say what they say.
package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-faster/errors"
)

// Kind is a way to be hostile.
type Kind struct {
	Name string
	// Error is what an attempt at it is recorded with (specification, Delivery log);
	// empty where it counts as delivered.
	Error string

	script func(*peer)
	// certificate is what it shows; nil is http.
	certificate *tls.Certificate
	// mute says https and never shakes hands.
	mute bool
}

// Receiver is one of a kind, on a port of its own on loopback.
type Receiver struct {
	URL string

	listener net.Listener
	accepted atomic.Int64
	scripts  sync.WaitGroup
	stop     context.CancelFunc
}

// Open starts one. Its caller closes it.
func (k Kind) Open() (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen")
	}
	scheme := "http"
	if k.certificate != nil || k.mute {
		scheme = "https"
	}
	r := &Receiver{URL: scheme + "://" + listener.Addr().String() + "/", listener: listener}
	var done context.Context
	done, r.stop = context.WithCancel(context.Background())
	r.scripts.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			context.AfterFunc(done, func() { _ = conn.Close() })
			r.scripts.Go(func() { k.serve(conn) })
		}
	})
	return r, nil
}

// Accepted counts the connections so far. No kind keeps one, so that is one for each
// attempt.
func (r *Receiver) Accepted() int64 { return r.accepted.Load() }

// Close ends it and its connections.
func (r *Receiver) Close() {
	_ = r.listener.Close()
	r.stop()
	r.scripts.Wait()
}

func (k Kind) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	speaks := conn
	if k.certificate != nil {
		speaks = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*k.certificate}, MinVersion: tls.VersionTLS12})
	}
	k.script(&peer{Conn: speaks, in: bufio.NewReader(speaks), raw: conn})
}

// peer is a connection, seen from the receiver. A script that returns closes it.
type peer struct {
	net.Conn
	in  *bufio.Reader
	raw net.Conn
}

// request reads a whole one.
func (p *peer) request() bool {
	text := textproto.NewReader(p.in)
	if _, err := text.ReadLine(); err != nil {
		return false
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return false
	}
	length, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil {
		return false
	}
	_, err = io.CopyN(io.Discard, p.in, length)
	return err == nil
}

// say reports whether the other side still listens.
func (p *peer) say(text string) bool {
	_, err := io.WriteString(p, text)
	return err == nil
}

// untilGone waits for the sender to end the connection.
func (p *peer) untilGone() { _, _ = io.Copy(io.Discard, p.in) }

// reset ends the connection with RST instead of FIN.
func (p *peer) reset() {
	if tcp, ok := p.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
