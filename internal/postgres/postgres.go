// Package postgres is the way to the database: the connection pool, transactions, and the Ent client
// that refuses a query or a change without an organization in the context (scope.go). It knows no
// feature: the SQL of a feature stands in the feature's package, in files whose names end in _sql.go.
package postgres

import (
	"context"
	stdsql "database/sql"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/semaphore"

	"earshot/ent/db"
	_ "earshot/ent/db/runtime" // sets the defaults of columns, for example new ids
	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// DB is the way to the database. It is safe for concurrent use.
type DB struct {
	pool   *pgxpool.Pool
	sql    *stdsql.DB
	client *db.Client
	lists  *db.Client
	// transactions limits the transactions of each organization.
	transactions *inflight.Limit[publicid.Organization]
	// deliveries limits the statements that may wait for rows of deliveries.
	deliveries *semaphore.Weighted
}

// Options of a DB.
type Options struct {
	// URL is a postgres:// connection string.
	URL string
	// MaxConns bounds the pool; 0 takes pgx's default.
	MaxConns int32
	// Tracer sees every statement; nil is no tracer.
	Tracer pgx.QueryTracer
	// Serving limits every wait for the database: see timeouts.go.
	Serving bool
}

// Open makes the pool. It does not connect yet: if the database is away, the first use or Ping
// fails.
func Open(o Options) (*DB, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// pgx masks the password in its message.
		return nil, errors.Wrap(err, "parse the database URL")
	}
	if o.MaxConns > 0 {
		config.MaxConns = o.MaxConns
	}
	config.AfterConnect = readTimesInUTC
	config.ConnConfig.Tracer = o.Tracer
	survivesFailover(config)
	if o.Serving {
		limited(config.ConnConfig.RuntimeParams)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, errors.Wrap(err, "make the connection pool")
	}
	handle := stdsql.OpenDB(connector{stdlib.GetPoolConnector(pool)})
	// The pool keeps the connections. Idle connections in database/sql would be missing for queries
	// that use the pool.
	handle.SetMaxIdleConns(0)
	driver := entsql.OpenDB(dialect.Postgres, handle)
	client, lists := db.NewClient(db.Driver(ridden{driver})), db.NewClient(db.Driver(freshPlans{driver}))
	scopeToOrganization(client)
	scopeToOrganization(lists)
	size := max(1, int(config.MaxConns)/2)
	return &DB{
		pool: pool, sql: handle, client: client, lists: lists,
		transactions: newTransactionLimit(size),
		deliveries:   semaphore.NewWeighted(int64(max(1, size/2))),
	}, nil
}

// readTimesInUTC makes pgx return times in UTC instead of the time zone of the machine.
func readTimesInUTC(_ context.Context, c *pgx.Conn) error {
	c.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// Close closes all connections.
func (d *DB) Close() {
	_ = d.sql.Close()
	d.pool.Close()
}

// StdPool is the pool behind Ent's client, for a library that needs database/sql.
func (d *DB) StdPool() *stdsql.DB { return d.sql }

// acquire waits for a connection no longer than connectionTimeout, as connector does.
func (d *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectionTimeout)
	defer cancel()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "wait for a connection")
	}
	return conn, nil
}

// Ping makes sure that the database answers.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.pool.Ping(ctx); err != nil {
		return errors.Wrap(err, "ping the database")
	}
	return nil
}

// Client reads, and writes without a transaction, within the organization of the context.
func (d *DB) Client() *db.Client { return d.client }

// Lists is Client for the queries of lists. Postgres plans each of them for its arguments, because
// the best plan depends on how many rows a filter matches. For all other queries it keeps one plan.
func (d *DB) Lists() *db.Client { return d.lists }

const (
	// deadlockTries is how often a transaction runs that the database ends because of a deadlock.
	// The database ends one of the two, and the other gets its locks, so two tries are usually
	// enough.
	deadlockTries = 8
	// movedTries is how often a transaction runs that ends with ErrAgain, or because another one has
	// inserted a row before it. Each time, another transaction has made progress.
	movedTries = 100
	// DeadlockDetected is the SQLSTATE of a deadlock.
	DeadlockDetected = "40P01"
	uniqueViolation  = "23505"
)

// These unique indexes can conflict with a concurrent transaction. The retry reads the conflicting row
// and handles it. The cases are:
//   - A contact's address changes. Triggers rewrite the hash of its votes and of its guest user, without
//     a lock of the post.
//   - Another post takes a slug between the search for a free one and the insert.
//   - Another request inserts a contact with the same external id.
var followed = []string{"vote_post_id_email_hash", "user_organization_id_email_hash", "post_board_id_slug", externalIDIndex}

const externalIDIndex = "contact_organization_id_external_user_id"

// IsExternalIDTaken reports whether a statement failed because another contact has the external id.
func IsExternalIDTaken(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == uniqueViolation && failed.ConstraintName == externalIDIndex
}

func deadlocked(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == DeadlockDetected
}

func overtaken(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == uniqueViolation && slices.Contains(followed, failed.ConstraintName)
}

// ErrAgain ends a transaction that has its locks and then finds that it needs other ones. The
// transaction runs again from its start, without its locks. Taking more locks out of order could
// cause a deadlock.
var ErrAgain = errors.New("the transaction needs other locks: run it again")

// Again calls a function that leaves nothing behind when it fails. It repeats the call after
// ErrAgain, after a deadlock, and after a conflict of an index in followed.
func Again(do func() error) error {
	deadlocks, moves := 0, 0
	for {
		err := do()
		switch {
		case errors.Is(err, ErrAgain), overtaken(err):
			moves++
		case deadlocked(err):
			deadlocks++
		default:
			return err
		}
		if deadlocks == deadlockTries || moves == movedTries {
			return err
		}
	}
}

// OnDeliveries is again for a statement that locks rows of deliveries. It may have to wait while the
// rows of a deleted webhook are removed. Each group of deliveries runs such statements, so together
// they get only a quarter of the pool.
func (d *DB) OnDeliveries(ctx context.Context, do func() error) error {
	if err := d.deliveries.Acquire(ctx, 1); err != nil {
		return errors.Wrap(err, "wait for other statements about deliveries")
	}
	defer d.deliveries.Release(1)
	return Again(do)
}

// InTx runs fn in one transaction and commits when it returns nil. Keep fn fast: it holds a
// connection and row locks. If fn returns ErrAgain, or the database ends the transaction because of
// a concurrent one, fn runs again in a new transaction.
func (d *DB) InTx(ctx context.Context, fn func(tx *db.Tx) error) error {
	return d.InTxWithRides(ctx, nil, func(tx *db.Tx, _ func(context.Context) error) (func(*pgx.Batch), error) {
		return nil, fn(tx)
	})
}

func (d *DB) runTx(ctx context.Context, fn func(tx *db.Tx) error) error {
	tx, err := d.client.Tx(ctx)
	if err != nil {
		return errors.Wrap(err, "begin")
	}
	// This does nothing after a commit, and frees the connection after an error or a panic.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		// The commit would not be sent, so it is certain that nothing was changed.
		return errors.Wrap(err, "commit")
	}
	if err := tx.Commit(); errors.Is(err, pgx.ErrTxCommitRollback) {
		return errors.Wrap(err, "commit") // it is certain that nothing was changed
	} else if err != nil {
		return errors.Wrap(&unknownOutcome{err}, "commit")
	}
	return nil
}
