package send

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// readBuffer is the size of the transport's read buffer in bytes. A usual answer, some headers and
// a line, fits.
const readBuffer = 4 << 10

// quietConn keeps a receiver's surplus bytes out of the program's log.
//
// When bytes follow a complete answer, net/http logs its buffer. Examples are a 204 with a body, or
// a Content-Length that is too small. The receiver controls those bytes: there can be many, and
// they can repeat the request's path. net/http has no option to turn this off.
//
// The transport therefore gets the bytes of headers one at a time, so that its buffer holds no
// surplus. On an idle connection it gets none, and the connection ends.
type quietConn struct {
	net.Conn
	raw   net.Conn // the TCP connection below TLS, or Conn itself
	input *bufio.Reader
	// taken and returned count how often attempts got the connection and gave it back. The two are
	// equal while it is idle. A flag wouldn't do, because the next attempt can take the connection
	// before the previous one reports its return.
	taken, returned atomic.Int64
	// ended says that reading met the end or an error. net/http reports half a line before the end
	// as a malformed line, and this flag tells the two apart.
	ended atomic.Bool
}

func newQuietConn(conn, raw net.Conn) *quietConn {
	return &quietConn{Conn: conn, raw: raw, input: bufio.NewReaderSize(conn, readBuffer)}
}

// Read fills all of p only where that can't reach beyond the answer. When net/http reads a body
// past its buffer, p is larger than the buffer and limited to the rest of the body.
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

// Close closes the TCP connection without the close message of TLS. A receiver that doesn't read
// can delay that message for five seconds, beyond the attempt's time. HTTP doesn't need it to find
// the end of a message.
func (c *quietConn) Close() error { return c.raw.Close() }

// flight is the progress of one attempt. The transport reports it from its own goroutines.
type flight struct {
	conn     atomic.Pointer[quietConn] // nil until connected
	answered atomic.Bool               // the first byte of an answer came
}

// attemptKey is the key of an attempt's context in the contexts that derive from it.
type attemptKey struct{}

// attemptOf returns the context of the attempt that a dial is for. The transport dials with a
// context that keeps the values of the request's context but not its end, because later requests
// may use the connection. Here, a dial and a handshake end with their attempt.
func attemptOf(ctx context.Context) context.Context {
	if attempt, ok := ctx.Value(attemptKey{}).(context.Context); ok {
		return attempt
	}
	return ctx
}

// watch returns ctx with the hooks that update f and the connection's counts. The context also
// carries itself for attemptOf.
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
