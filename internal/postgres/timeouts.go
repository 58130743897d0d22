package postgres

import (
	"context"
	"database/sql/driver"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
)

// These timeouts limit how long a serving process waits for the database. Without them, a locked row
// or a stalled database would leave requests without an answer. Postgres enforces lockTimeout and
// statementTimeout on each connection, even if the process stalls.
//
// They apply to everything that the process does. Deliveries, sweeps and the retention repeat work
// that was cut off, and lose nothing. A batch of attempts gives up after 5 s anyway, and the worker
// tries to record an outcome until it succeeds. Commands such as a migration have no such limits.
const (
	// lockTimeout is a thousand times as long as our transactions hold a lock, and twice
	// transactionTimeout.
	LockTimeout = 10 * time.Second
	// statementTimeout is longer than any statement should take. Large removals go page by page.
	statementTimeout = time.Minute
	// connectionTimeout equals transactionTimeout. A change that gets no connection within this time
	// is behind many others.
	ConnectionTimeout = 5 * time.Second
)

// limited adds the timeouts to the parameters of a connection. Parameters in the database's URL take
// precedence.
func limited(parameters map[string]string) {
	for name, limit := range map[string]time.Duration{
		"lock_timeout":      LockTimeout,
		"statement_timeout": statementTimeout,
		// A process that stalls in the middle of a transaction would keep its locks.
		"idle_in_transaction_session_timeout": statementTimeout,
	} {
		if _, given := parameters[name]; !given {
			parameters[name] = strconv.FormatInt(limit.Milliseconds(), 10)
		}
	}
}

// connector gives the pool's connections to database/sql. It waits for one no longer than
// connectionTimeout, however much time the caller has.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectionTimeout)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// unavailable are the SQLSTATEs of failures that are not the caller's fault and that changed
// nothing.
var unavailable = map[string]bool{
	"55P03": true,                               // a lock was not available in time
	"57014": true,                               // a statement took too long
	"25P03": true,                               // a transaction was idle for too long
	"53300": true,                               // there are too many connections
	"53100": true,                               // the disk is full
	"57P01": true, "57P02": true, "57P03": true, // the server stops, crashed, or starts
	readOnly: true, // it is a standby, or became one
}

// Unavailable reports whether an error means that the database was not available in time, and that
// nothing was changed. A retry may succeed.
func Unavailable(err error) bool {
	var (
		failed  *pgconn.PgError
		away    *pgconn.ConnectError
		unknown *unknownOutcome
	)
	switch {
	case errors.As(err, &failed):
		return unavailable[failed.Code]
	case errors.As(err, &unknown):
		return false
	}
	return errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded) || connectionLost(err)
}

// Unknown reports whether an error is of a commit that the database did not answer. Such a
// transaction may or may not be committed.
func Unknown(err error) bool {
	var (
		failed  *pgconn.PgError
		unknown *unknownOutcome
	)
	return errors.As(err, &unknown) && !errors.As(err, &failed)
}

// unknownOutcome is an error of a commit. If the database did not answer, the transaction may be
// committed.
type unknownOutcome struct{ error }

func (u *unknownOutcome) Unwrap() error { return u.error }
