package store

import (
	"context"
	"database/sql/driver"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
)

// What a process that serves waits for the database, so that a row or table that
// somebody holds, or a database that stands still, ends in an answer. Postgres itself
// keeps these times, on each connection: it also does where the process can't.
//
// They hold for all that the process does. Deliveries, sweeps and the retention do
// something again that was cut off, and lose nothing by it: a batch of attempts gives
// up after 5 s anyway, and an outcome is recorded again until it is there. Commands
// have no such limits, so a migration takes the time that it takes.
const (
	// lockTimeout is a thousand times what a transaction of ours holds a lock for, and
	// twice what others wait for their transaction meanwhile.
	lockTimeout = 10 * time.Second
	// statementTimeout is for the longest statement that is meant to be: to delete a
	// webhook with its log of some million deliveries.
	statementTimeout = time.Minute
	// connectionTimeout is as long as AcquireTransaction waits: a change that
	// finds no connection within it stands behind many others.
	connectionTimeout = 5 * time.Second
)

// limited are the parameters of a connection that keeps the times. What the database's
// URL says of them counts more.
func limited(parameters map[string]string) {
	for name, limit := range map[string]time.Duration{
		"lock_timeout":      lockTimeout,
		"statement_timeout": statementTimeout,
		// The process stands still in the middle of a transaction, and its locks with it.
		"idle_in_transaction_session_timeout": statementTimeout,
	} {
		if _, given := parameters[name]; !given {
			parameters[name] = strconv.FormatInt(limit.Milliseconds(), 10)
		}
	}
}

// connector hands the pool's connections to database/sql, and waits for one for some
// seconds only, however much time the caller has.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectionTimeout)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// The SQLSTATEs of what ends because somebody else is in the way, and nothing was done.
var unavailable = map[string]bool{
	"55P03": true,                               // a lock wasn't to be had in time
	"57014": true,                               // a statement took too long
	"25P03": true,                               // a transaction stood still
	"53300": true,                               // there are too many connections
	"57P01": true, "57P02": true, "57P03": true, // the server stops, crashed, or starts
	readOnly: true, // it is a standby, or became one
}

// Unavailable reports whether an error says that the database wasn't to be had in the
// time that there was, and that nothing was changed. To do the same again later may
// succeed.
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

// Unknown reports whether an error is of a commit that the database didn't answer, so that
// nobody knows whether it is there.
func Unknown(err error) bool {
	var (
		failed  *pgconn.PgError
		unknown *unknownOutcome
	)
	return errors.As(err, &unknown) && !errors.As(err, &failed)
}

// unknownOutcome is an error of a commit: where the database didn't answer, it may have
// committed.
type unknownOutcome struct{ error }

func (u *unknownOutcome) Unwrap() error { return u.error }
