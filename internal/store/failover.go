package store

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

// What lets a process find the server that takes writes, where DATABASE_URL names
// several or an address moves from one to another, without being started again.
const (
	// hostTimeout is how long one of several hosts may take to accept a connection: two
	// of them may be silent before a request has waited for connectionTimeout.
	hostTimeout = 2 * time.Second
	// pingTimeout is how long a connection that was idle may take to prove that its
	// server is there; then another is opened, within connectionTimeout.
	pingTimeout = 2 * time.Second
	// silenceTimeout ends a connection to a machine that doesn't acknowledge what it is
	// sent, as one without power. The system itself takes a quarter of an hour. It is
	// far above a hiccup of a network, and a statement's own time doesn't count: a
	// machine that works on one acknowledges.
	silenceTimeout = 10 * time.Second
	// readOnly is the SQLSTATE of a standby that is asked to write.
	readOnly = "25006"
)

// survivesFailover sets what DATABASE_URL leaves open.
func survivesFailover(c *pgxpool.Config) {
	conn := c.ConnConfig
	several := slices.ContainsFunc(conn.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != conn.Host || f.Port != conn.Port // else it is the same without TLS
	})
	if several && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectionTimeout
		if several {
			conn.ConnectTimeout = hostTimeout
		}
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = pingTimeout
	}
	conn.DialFunc = (&net.Dialer{
		// Half of it until the first question and half until the answer is missed.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceTimeout / 2, Interval: silenceTimeout / 2, Count: 1},
		Control:         endAfterSilence,
	}).DialContext
	closeOn := conn.OnPgError
	conn.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		// The server was demoted, or an address leads to another one: the next connection
		// may find the primary, this one never will.
		return err.Code != readOnly && closeOn(c, err)
	}
}

// connectionLost reports whether a connection ended under a statement, which then was
// not done: the transaction is gone with it. A commit is another matter.
func connectionLost(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed)
}
