package postgres

import (
	"database/sql/driver"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// These settings let a running process find the server that accepts writes. DATABASE_URL may name
// several hosts, or an address may move from one server to another.
const (
	// hostTimeout is the time that one of several hosts has to accept a connection. Two hosts can
	// be silent before a request has waited for connectionTimeout.
	hostTimeout = 2 * time.Second
	// pingTimeout is the time in which an idle connection has to prove that its server responds.
	// After it, the pool opens another connection within connectionTimeout.
	pingTimeout = 2 * time.Second
	// silenceTimeout ends a connection to a machine that doesn't acknowledge packets, for example
	// after a power failure. The operating system's default is a quarter of an hour. The timeout is
	// far above a network hiccup. The duration of a statement doesn't count, because a working
	// machine acknowledges packets.
	silenceTimeout = 10 * time.Second
	// readOnly is the SQLSTATE of a write on a standby.
	readOnly = "25006"
)

// survivesFailover sets the options that DATABASE_URL leaves open.
func survivesFailover(c *pgxpool.Config) {
	conn := c.ConnConfig
	several := slices.ContainsFunc(conn.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != conn.Host || f.Port != conn.Port // otherwise it is the same host without TLS
	})
	if several && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = ConnectionTimeout
		if several {
			conn.ConnectTimeout = hostTimeout
		}
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = pingTimeout
	}
	conn.DialFunc = (&net.Dialer{
		// Half of the time passes until the first probe, and half until its answer is missing.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceTimeout / 2, Interval: silenceTimeout / 2, Count: 1},
		Control:         endAfterSilence,
	}).DialContext
	closeOn := conn.OnPgError
	conn.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		// The server was demoted, or the address leads to another server. A new connection may find
		// the primary; this one can't.
		return err.Code != readOnly && closeOn(c, err)
	}
}

// connectionLost reports whether a connection ended during a statement. The statement had no
// effect, because its transaction ended with the connection. The outcome of a lost commit is
// unknown.
func connectionLost(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed)
}
