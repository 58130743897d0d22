package send

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// readBuffer is the transport's read buffer in bytes. The usual answer, some
// headers and a line, fits.
const readBuffer = 4 << 10

// quietConn keeps a receiver's surplus bytes out of the program's log.
//
// net/http prints what it has buffered, up to the buffer's size, when bytes
// follow an answer that was complete: a 204 with a body, a Content-Length too
// small. Those bytes are the receiver's choice. They can repeat the request's
// path, and they can be many; and there is no way to turn the printing off. So
// the transport gets the bytes of headers one at a time, which leaves nothing
// over in its buffer, and on an idle connection it gets none: the connection
// ends there.
type quietConn struct {
	net.Conn
	raw   net.Conn // the TCP connection below TLS, or Conn itself
	input *bufio.Reader
	// taken and returned count the attempts that got the connection and gave
	// it back. They are equal while it is idle. A pair of counts and no flag,
	// because the next attempt can take the connection before the last one's
	// notice of giving it back arrives.
	taken, returned atomic.Int64
	// ended says that reading met the end or an error. net/http takes half a
	// line before the end for a malformed line; this tells the two apart.
	ended atomic.Bool
}

func newQuietConn(conn, raw net.Conn) *quietConn {
	return &quietConn{Conn: conn, raw: raw, input: bufio.NewReaderSize(conn, readBuffer)}
}

// Read fills p wholly only where that cannot reach beyond the answer: net/http
// passes a p larger than its buffer when it reads a body past the buffer, and
// has cut p to the body's rest before.
func (c *quietConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(p) > readBuffer {
		return c.input.Read(p)
	}
	b, err := c.input.ReadByte()
	if err != nil {
		c.ended.Store(true)
		return 0, err
	}
	if c.taken.Load() == c.returned.Load() {
		return 0, io.EOF
	}
	p[0] = b
	return 1, nil
}

// Close ends the TCP connection without the farewell of TLS. A receiver that
// does not read can hold that up for five seconds, beyond the attempt's time;
// HTTP knows without it where a message ends.
func (c *quietConn) Close() error { return c.raw.Close() }

// flight is how far one attempt came, as told by the transport, which calls
// from goroutines of its own.
type flight struct {
	conn     atomic.Pointer[quietConn] // nil before there is a connection
	answered atomic.Bool               // the first byte of an answer came
}

// attemptKey finds an attempt's context in those that are made from it.
type attemptKey struct{}

// attemptOf returns the context of the attempt that a dial is for. The
// transport dials with a context that keeps the values of the request's but
// not its end, for the sake of later requests; here a connect and a handshake
// end with their attempt.
func attemptOf(ctx context.Context) context.Context {
	if attempt, ok := ctx.Value(attemptKey{}).(context.Context); ok {
		return attempt
	}
	return ctx
}

// watch returns ctx with the hooks that keep f and the connection's counts,
// and with itself for attemptOf.
func (f *flight) watch(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, attemptKey{}, ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, ok := info.Conn.(*quietConn); ok {
				conn.taken.Add(1)
				f.conn.Store(conn)
			}
		},
		GotFirstResponseByte: func() { f.answered.Store(true) },
		PutIdleConn: func(err error) {
			if conn := f.conn.Load(); err == nil && conn != nil {
				conn.returned.Add(1)
			}
		},
	})
}
