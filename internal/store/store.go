// Package store keeps the data: the connection pool, the Ent client with the
// organization scope built in, transactions, and the migrations.
//
// What it refuses: a query or a change through Ent without an organization in
// the context (see scope.go), and to serve on a schema that is behind (see
// migrate.go). Hand-written SQL is outside the scope's reach, so it stays in
// this package and says in its comment whose rows it touches.
package store

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
	_ "earshot/ent/db/runtime" // the schema's defaults; without it ids stay zero
	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

// Store is the way to the database. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	sql    *stdsql.DB
	client *db.Client
	lists  *db.Client
	// transactions bounds those of each organization.
	transactions *inflight.Limit[publicid.Organization]
	// deliveries bounds the statements about them that may wait for rows.
	deliveries *semaphore.Weighted
}

// Options of a store.
type Options struct {
	// URL is a postgres:// connection string.
	URL string
	// MaxConns bounds the pool; 0 takes pgx's default.
	MaxConns int32
	// Tracer sees every statement; nil is nobody.
	Tracer pgx.QueryTracer
	// Serving bounds how long anything waits for the database: see timeouts.go.
	Serving bool
}

// Open makes the pool. It doesn't connect yet: a database that is away shows
// at the first use, and in Ping.
func Open(o Options) (*Store, error) {
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
	// The pool below keeps the connections; a second layer of idle ones would
	// hold them back from the raw queries.
	handle.SetMaxIdleConns(0)
	driver := entsql.OpenDB(dialect.Postgres, handle)
	client, lists := db.NewClient(db.Driver(keyedTransactions{driver})), db.NewClient(db.Driver(freshPlans{driver}))
	scopeToOrganization(client)
	scopeToOrganization(lists)
	size := max(1, int(config.MaxConns)/2)
	return &Store{
		pool: pool, sql: handle, client: client, lists: lists,
		transactions: newTransactionLimit(size),
		deliveries:   semaphore.NewWeighted(int64(max(1, size/2))),
	}, nil
}

// readTimesInUTC spares callers the zone of the machine: what is written in UTC
// is read in UTC.
func readTimesInUTC(_ context.Context, c *pgx.Conn) error {
	c.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// Close gives all connections back.
func (s *Store) Close() {
	_ = s.sql.Close()
	s.pool.Close()
}

// Ping makes sure that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return errors.Wrap(err, "ping the database")
	}
	return nil
}

// Client reads, and writes outside a transaction, within the organization of
// the context.
func (s *Store) Client() *db.Client { return s.client }

// Lists is Client for the queries of lists, which the database plans for their own
// arguments: the best plan depends on how much a filter finds, of which a plan that is
// kept, as for everything else, would know nothing.
func (s *Store) Lists() *db.Client { return s.lists }

const (
	// How often something is done that the database ends because of a deadlock. It
	// ends one of two, and the other has its locks then, so a second time mostly
	// does.
	deadlockTries = 8
	// How often something is done that found its rows moved: each time somebody else
	// got something done.
	movedTries = 100
	// The SQLSTATEs.
	deadlockDetected = "40P01"
	uniqueViolation  = "23505"
)

// followed are the unique indexes that a contact's new address may meet without the lock of the
// post, or of anything else, that keeps others from them: the database has the hash of its votes
// and of its guest follow. Who looks again sees what was in the way, and goes round it.
var followed = []string{"vote_post_id_email_hash", "user_organization_id_email_hash"}

// EndedByOthers reports whether the database ended a transaction because of what others did at
// the same time.
func EndedByOthers(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && (failed.Code == deadlockDetected ||
		failed.Code == uniqueViolation && slices.Contains(followed, failed.ConstraintName))
}

// ErrAgain is what a transaction ends with that found, when it had its locks, that
// it needs others. It runs again from its start and holds none meanwhile: who goes
// on taking locks meets those who took them the other way round.
var ErrAgain = errors.New("what was to be locked has moved")

// again does something that leaves nothing behind when it fails, and does it again
// after a deadlock, after what contacts' addresses met at the same time, or ErrAgain.
func again(do func() error) error {
	deadlocks, moves := 0, 0
	for {
		err := do()
		switch {
		case errors.Is(err, ErrAgain):
			moves++
		case EndedByOthers(err):
			deadlocks++
		default:
			return err
		}
		if deadlocks == deadlockTries || moves == movedTries {
			return err
		}
	}
}

// onDeliveries is again for a statement about rows of deliveries, which somebody may
// hold who deletes their webhook. Many want that at once, one for each group of
// deliveries, so a quarter of the pool is for them.
func (s *Store) onDeliveries(ctx context.Context, do func() error) error {
	if err := s.deliveries.Acquire(ctx, 1); err != nil {
		return errors.Wrap(err, "wait for other statements about deliveries")
	}
	defer s.deliveries.Release(1)
	return again(do)
}

// InTx runs fn in one transaction and commits when it returns nil. Nothing
// slow belongs into fn: it holds a connection and row locks. Where the database
// ended the transaction because of others, and where fn returns ErrAgain, fn runs
// again, in a new one.
func (s *Store) InTx(ctx context.Context, fn func(tx *db.Tx) error) error {
	return again(func() error { return s.once(ctx, fn) })
}

func (s *Store) once(ctx context.Context, fn func(tx *db.Tx) error) error {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return errors.Wrap(err, "begin")
	}
	// After a commit this does nothing; after an error or a panic it frees the
	// connection.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		// The commit wouldn't be sent, so nothing was changed, and that is known.
		return errors.Wrap(err, "commit")
	}
	if err := tx.Commit(); err != nil {
		return errors.Wrap(&unknownOutcome{err}, "commit")
	}
	return nil
}
