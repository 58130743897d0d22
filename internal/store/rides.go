package store

import (
	"context"
	stdsql "database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// AtCommit are the rows that a transaction of InTxWithRides writes with its commit.
type AtCommit struct {
	// Events are inserted in their order, each with a delivery for every enabled webhook that
	// subscribes to its type. The insert locks the organization's event counter.
	Events []EventRow
	// SubscribedOnly leaves out events without a subscriber.
	SubscribedOnly bool
	Answers        []KeptAnswer
}

// InTxWithRides is InTx for a change of one organization. Two groups of statements cost no round trip.
// The keys are locked and looked up with BEGIN, and the rows that fn returns are written with COMMIT.
// fn gets the keys that cannot be used, by their ids, with ErrKeyInUse or a RecordedError. It must
// change nothing for the requests with these keys.
//
// InTxWithRides returns the deliveries of the events. After a commit with an Unknown outcome some or
// all are missing, and the sweep starts them if they exist.
func (s *Store) InTxWithRides(
	ctx context.Context, of publicid.Organization, keys []IdempotencyKey,
	fn func(tx *db.Tx, taken map[[32]byte]error) (AtCommit, error),
) (made []DeliveryRow, err error) {
	err = again(func() error {
		own := &riddenTx{of: of, keys: keys, ctx: ctx}
		err := s.once(context.WithValue(ctx, riddenTxKey{}, own), func(tx *db.Tx) (err error) {
			own.last, err = fn(tx, own.look.Taken())
			return err
		})
		made = own.made
		return err
	})
	return made, err
}

// ridden is Ent's driver with transactions whose BEGIN and COMMIT carry other statements.
type ridden struct{ *entsql.Driver }

// riddenTxKey is the context key of a transaction for Tx. Ent passes nothing else to its driver.
type riddenTxKey struct{}

// Tx begins a transaction. The context tells whether it is one of InTxWithRides.
func (d ridden) Tx(ctx context.Context) (dialect.Tx, error) {
	own, ok := ctx.Value(riddenTxKey{}).(*riddenTx)
	if !ok {
		return d.Driver.Tx(ctx)
	}
	conn, err := d.DB().Conn(ctx)
	if err != nil {
		return nil, err
	}
	own.Conn, own.conn = entsql.Conn{ExecQuerier: conn}, conn
	if err := own.begin(ctx); err != nil {
		_ = own.Rollback()
		return nil, err
	}
	return own, nil
}

// riddenTx is a transaction of InTxWithRides.
type riddenTx struct {
	entsql.Conn
	conn *stdsql.Conn
	of   publicid.Organization
	keys []IdempotencyKey
	look KeyLook
	last AtCommit
	made []DeliveryRow
	// ctx is for the commit, because Ent passes none.
	ctx  context.Context
	over bool
}

// send sends statements together on the transaction's connection.
func (t *riddenTx) send(ctx context.Context, statements *pgx.Batch) error {
	return t.conn.Raw(func(conn any) error {
		return conn.(*stdlib.Conn).Conn().SendBatch(ctx, statements).Close()
	})
}

func (t *riddenTx) begin(ctx context.Context) error {
	statements := &pgx.Batch{}
	statements.Queue("BEGIN")
	if len(t.keys) > 0 {
		t.look.queue(statements, t.of, t.keys)
	}
	return t.send(ctx, statements)
}

// Commit writes the last rows and commits. Ent calls it.
func (t *riddenTx) Commit() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	statements := &pgx.Batch{}
	if len(t.last.Events) > 0 {
		queueEvents(statements, t.of, t.last, &t.made)
	}
	if len(t.last.Answers) > 0 {
		queueRecords(statements, t.of, t.last.Answers)
	}
	statements.Queue("COMMIT")
	err := t.send(t.ctx, statements)
	if err != nil {
		_ = t.Rollback()
		return err
	}
	t.over = true
	return t.conn.Close()
}

// Rollback undoes the transaction, unless it is over. A connection that doesn't take it any
// more is thrown away by the pool, and the server does the same.
func (t *riddenTx) Rollback() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	t.over = true
	ctx, cancel := context.WithTimeout(context.Background(), connectionTimeout)
	defer cancel()
	_, err := t.conn.ExecContext(ctx, "ROLLBACK")
	if closed := t.conn.Close(); err == nil {
		err = closed
	}
	return err
}
