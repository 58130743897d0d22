// Package hostile has receivers that misbehave. They write HTTP by hand to raw sockets, because a
// library's server would refuse to send such answers.
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

// Kind is a kind of hostile behaviour.
type Kind struct {
	Name string
	// Error is the recorded error of an attempt (specification, Delivery log). It is empty if the
	// attempt counts as delivered.
	Error string

	script func(*peer)
	// certificate is the server's certificate. Without one, the receiver uses http.
	certificate *tls.Certificate
	// mute makes an https URL whose server never completes the handshake.
	mute bool
}

// Receiver is a running receiver of a kind, on its own loopback port.
type Receiver struct {
	URL string

	listener net.Listener
	accepted atomic.Int64
	scripts  sync.WaitGroup
	stop     context.CancelFunc
}

// Open starts a receiver. The caller closes it.
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

// Accepted returns the number of connections so far. No kind reuses a connection, so there is one
// for each attempt.
func (r *Receiver) Accepted() int64 { return r.accepted.Load() }

// Close ends the receiver and its connections.
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

// peer is a connection, from the receiver's side. It closes when its script returns.
type peer struct {
	net.Conn
	in  *bufio.Reader
	raw net.Conn
}

// request reads a whole request.
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

// say writes the text and reports whether that succeeded.
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
